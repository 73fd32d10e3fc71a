"""Commands on a number in the place of classes: what ``fit``, ``score`` and ``plan`` do then."""
