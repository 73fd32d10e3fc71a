"""How numbers and dates are written as text, by what was declared and by nothing else."""

from cumae.data.texts.dates import moment_in, refuse_format
from cumae.data.texts.written import PLAIN, Written, number_in

__all__ = ["PLAIN", "Written", "moment_in", "number_in", "refuse_format"]
