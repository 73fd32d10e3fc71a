"""The commands from a table to answers, one file each, and what they share.

``routes`` knows what ``fit`` can fit, and ``private`` has the rows that it learns from. ``answers``
asks what was fitted. ``pictures`` writes plots.
"""
