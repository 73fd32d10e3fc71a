"""Where sums over rows are computed: this process, processes, or a cluster.

An engine has a table in numbered pieces, and computes a pure function of each. Sums are sums of
whole numbers, so that they are the same for any pieces, workers, retries and any order. Nothing of
privacy lives here: noise is drawn by the driver alone, after the sum.
"""

from cumae.engines.answered import AnsweredRows, right_answers
from cumae.engines.engine import RowEngine
from cumae.engines.here import Here, Processes, cut, files_in_pieces, raw_pieces, summed
from cumae.engines.pieces import Pieces, RawBlock, row_count

__all__ = [
    "AnsweredRows",
    "Here",
    "Pieces",
    "Processes",
    "RawBlock",
    "RowEngine",
    "cut",
    "files_in_pieces",
    "raw_pieces",
    "right_answers",
    "row_count",
    "summed",
]
