"""Commands on a number instead of classes: what ``fit``, ``score`` and ``plan`` do then."""
