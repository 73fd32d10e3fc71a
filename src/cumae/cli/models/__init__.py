"""The commands from a table to answers, one file each; ``routes`` knows what ``fit`` can fit."""
