"""Numbers, dates and ordered values as text, by what was declared and by nothing else."""

from cumae.data.texts.dates import as_cells_are, moment_in, refuse_format
from cumae.data.texts.ordered import (
    LARGEST_WORD,
    MAX_BYTES,
    WORD_BYTES,
    Order,
    middle_keys,
    next_key,
)
from cumae.data.texts.written import PLAIN, Written, number_in

__all__ = [
    "LARGEST_WORD",
    "MAX_BYTES",
    "PLAIN",
    "WORD_BYTES",
    "Order",
    "Written",
    "as_cells_are",
    "middle_keys",
    "moment_in",
    "next_key",
    "number_in",
    "refuse_format",
]
