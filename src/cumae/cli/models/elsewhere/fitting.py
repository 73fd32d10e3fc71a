"""``cumae fit --engine``: rows of Parquet files that workers read themselves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from cumae.cli.models.numbers.fitting import regressor
from cumae.cli.models.routes import published

# What takes seconds to load is imported by the function that uses it: other commands start faster.
if TYPE_CHECKING:
    from cumae.cli.files.tables import TableHead
    from cumae.cli.models.private import PrivateTable

BESIDE = (
    "--goal, --costs, --threshold, --class-shares, --algorithm, --concept, --set, --unlabelled, "
    "--route, --max-queries, --keys, --public, --encoding, --separator, --dry-run and oracles"
)


@dataclass(frozen=True)
class Elsewhere:
    """A fit to rows that stay on an engine.

    Parameters
    ----------
    address : str
        The engine.
    data, label : str
        A Parquet file, a folder or an address, and its column of labels.
    schema, classes : str, or None
        The file of declarations, and the classes as they were given.
    number_range, link : str, or None
        The range of labels that are numbers, and their link.
    model : str, or None
        The name of the model; None for the kernel.
    epsilon, delta : float
        Privacy parameters.
    """

    address: str
    data: str
    label: str
    schema: str | None
    classes: str | None
    number_range: str | None
    link: str | None
    model: str | None
    epsilon: float
    delta: float

    def fit(self, beside: Sequence[Any]) -> tuple[Any, PrivateTable, float]:
        """Fit a learner, and return it, its rows, and the seconds that it took.

        Parameters
        ----------
        beside : sequence
            The values of options that are refused here, or None.
        """
        import numpy as np  # noqa: PLC0415

        from cumae.cli.files.messages import say  # noqa: PLC0415
        from cumae.cli.files.schemas import SchemaFile, read_schema  # noqa: PLC0415
        from cumae.cli.files.tables import TableFile, TableHead  # noqa: PLC0415
        from cumae.cli.models.private import PrivateTable  # noqa: PLC0415
        from cumae.data import ParquetRows  # noqa: PLC0415
        from cumae.engines import engine_at, rows_on  # noqa: PLC0415
        from cumae.progress import plain_lines  # noqa: PLC0415

        if any(one is not None for one in beside):
            raise typer.BadParameter(f"leave out {BESIDE}.", param_hint="--engine")
        started = time.monotonic()
        rows = ParquetRows(self.data)
        head = TableHead(self.data, list(rows.names), list(rows.kinds))
        head.need([self.label], "which --label names")
        declared = SchemaFile() if self.schema is None else read_schema(self.schema)
        columns = declared.columns_for(head, self.label)
        names = [column.name for column in columns.columns]
        classes = self._classes(head)
        learner = self._learner({column.name: column for column in columns.columns}, classes)
        with engine_at(self.address) as engine, plain_lines():
            kind = type(learner).__name__
            say(f"Fitting {kind} to {rows.n_rows:,} private rows on {engine.name} ...")
            learner.fit(rows_on(engine, rows.select([*names, self.label])), self.label)
        features, none = rows.select(names), np.zeros(0, dtype=np.int64)
        file = TableFile(self.data, rows)
        table = PrivateTable(file, features, none, columns, classes)
        return learner, table, time.monotonic() - started

    def _learner(self, columns: dict[str, Any], classes: list[Any]) -> Any:
        shared: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
        shared["columns"] = columns
        if self.number_range is not None:
            return regressor(self.model, self.number_range, self.link, **shared)
        found = published(self.model, **shared, classes=classes)
        if not found.reads_pieces:
            raise typer.BadParameter(
                f"{type(found).__name__} needs all rows in one process; take --model kernel, "
                "logistic or curves, and a --delta above 0.",
                param_hint="--engine",
            )
        return found

    def _classes(self, head: TableHead) -> list[Any]:
        """Return the classes; in a column of text they are texts."""
        from cumae.cli.files.checks import classes_of  # noqa: PLC0415

        found = [] if self.classes is None else classes_of(self.classes)
        return list(map(str, found)) if head.kinds([self.label]) == ["text"] else found
