"""Wire formats: from bytes to calls, and from answers to bytes; nothing here reads or writes."""
