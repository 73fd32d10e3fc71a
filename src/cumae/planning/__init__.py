"""Which route to take from private rows to answers, and how good it will be, before any cost."""
