"""How private rows, labels and queries are read: each one by itself, by declared types."""
