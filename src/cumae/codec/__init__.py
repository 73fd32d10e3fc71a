"""Storage of values: one registry of stored kinds, and one way to write them.

``registry`` knows which classes can be written, and under which names. ``plain`` turns values into
JSON, as published models and accounts are stored. ``packed`` turns values with arrays into bytes,
as the states of predictors are stored. ``cells`` has single cells of tables, and ``fitted`` has
whole learners. Nothing is pickled, so that reading a file runs no code from it.

>>> from cumae.codec import from_bytes, from_plain, to_bytes, to_plain
>>> from cumae.privacy import Guarantee, Pure
>>> promise = Guarantee.of(Pure(0.5), protects="a row", claims=())
>>> from_plain(to_plain([promise])) == from_bytes(to_bytes([promise])) == [promise]
True
"""

from cumae.codec.cells import LONG, cell_from_json, cell_to_json
from cumae.codec.fitted import by_fitted, rebuilt, stored
from cumae.codec.packed import from_bytes, to_bytes
from cumae.codec.plain import (
    FORMAT,
    TAG,
    TEXT_FORMAT,
    TEXT_FORMATS,
    PlainReader,
    PlainWriter,
    from_plain,
    read_file,
    to_plain,
)
from cumae.codec.registry import (
    Part,
    add_form,
    by_parameters,
    class_named,
    from_parameters,
    kind_of,
    name_of,
    register,
    register_kind,
    register_later,
    registered_names,
)

__all__ = [
    "FORMAT",
    "LONG",
    "TAG",
    "TEXT_FORMAT",
    "TEXT_FORMATS",
    "Part",
    "PlainReader",
    "PlainWriter",
    "add_form",
    "by_fitted",
    "by_parameters",
    "cell_from_json",
    "cell_to_json",
    "class_named",
    "from_bytes",
    "from_parameters",
    "from_plain",
    "kind_of",
    "name_of",
    "read_file",
    "rebuilt",
    "register",
    "register_kind",
    "register_later",
    "registered_names",
    "stored",
    "to_bytes",
    "to_plain",
]
