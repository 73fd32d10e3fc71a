"""Where sums over rows are computed: this process, processes, or a cluster.

An engine has a table in numbered pieces, and computes a pure function of each. Sums are sums of
whole numbers, so that they are the same for any pieces, workers, retries and any order. Nothing of
privacy lives here: noise is drawn by the driver alone, after the sum.
"""

from cumae.engines.addresses import engine_at
from cumae.engines.answered import AnsweredRows, refuse_elsewhere, right_answers
from cumae.engines.engine import RowEngine
from cumae.engines.frames import ColumnThere, engine_rows, placed_rows, rows_on
from cumae.engines.here import Here, Processes, cut, files_in_pieces, raw_pieces, summed
from cumae.engines.on_dask import Dask
from cumae.engines.on_ray import Ray
from cumae.engines.on_spark import Spark
from cumae.engines.pieces import Pieces, RawBlock, row_count
from cumae.engines.rows import Answers, EngineRows, Label

__all__ = [
    "AnsweredRows",
    "Answers",
    "ColumnThere",
    "Dask",
    "EngineRows",
    "Here",
    "Label",
    "Pieces",
    "Processes",
    "RawBlock",
    "Ray",
    "RowEngine",
    "Spark",
    "cut",
    "engine_at",
    "engine_rows",
    "files_in_pieces",
    "placed_rows",
    "raw_pieces",
    "refuse_elsewhere",
    "right_answers",
    "row_count",
    "rows_on",
    "summed",
]
