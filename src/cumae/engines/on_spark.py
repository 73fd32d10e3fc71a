"""Sums over rows on a cluster of Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cumae.engines.engine import Found, RowEngine, Work, each_once, size_of, worked
from cumae.errors import InvalidParameter, WorkersLost
from cumae.extras import pyspark, spark_sql

TURNS = 8  # pieces for each core in a job; progress comes after each job


class Spark(RowEngine):
    """Executors of Spark.

    Pieces that are kept stay in the memory of executors, and nowhere else. Those of which an
    executor lost track are computed again from what they were made of.

    Parameters
    ----------
    session : pyspark.sql.SparkSession, or None
        The session; None is the active one. Spark Connect is not enough: it has no numbered
        partitions.
    """

    name: ClassVar[str] = "Spark"

    def __init__(self, session: Any = None) -> None:
        session = spark_sql.SparkSession.getActiveSession() if session is None else session
        if session is None:
            raise InvalidParameter(
                "there is no session of Spark; start one first: SparkSession.builder.getOrCreate()."
            )
        if ".connect." in type(session).__module__:
            raise InvalidParameter(
                "a session of Spark Connect has no numbered partitions; connect to the master."
            )
        self.context = session.sparkContext

    def hold(self, pieces: Sequence[Any]) -> Any:
        return self.context.parallelize(list(enumerate(pieces)), max(len(pieces), 1))

    def run(self, work: Work, table: Any) -> Found:
        found = table.map(Numbered(work))
        parts = list(range(found.getNumPartitions()))
        turn = max(TURNS * self.context.defaultParallelism, 1)
        for start in range(0, len(parts), turn):
            try:
                results = self.context.runJob(found, list, parts[start : start + turn])
            except Exception as error:  # noqa: BLE001 - it may hold what an error of a worker says
                kind = type(error).__name__
                results = None
            if results is None:
                raise WorkersLost(
                    f"Spark gave up on a piece ({kind}), because its workers died again and again, "
                    "or the table could not be read; its message may show cells, and is not shown: "
                    "look at the logs of its executors, and fit again."
                )
            yield from results

    def keep(self, work: Work, table: Any) -> tuple[Any, tuple[int, ...]]:
        # In memory only: what does not fit is computed again, and not written to disks.
        made = table.map(Numbered(work)).persist(pyspark.StorageLevel.MEMORY_ONLY)
        count = made.getNumPartitions()
        sizes = dict(each_once(self.run(size_of, made), count, self.name))
        return made, tuple(sizes[number] for number in range(count))


def start_spark(master: str) -> Any:
    """Return a session of Spark whose log shows no error of a worker.

    Parameters
    ----------
    master : str
        Where it runs, such as ``spark://host:7077`` or ``local[4]``.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = spark_sql.SparkSession.builder.master(master).appName("cumae")
    for name, value in QUIET.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",  # of what it writes to disks
}


@dataclass(frozen=True)
class Numbered:
    """Work on a piece that comes with its number."""

    work: Work

    def __call__(self, numbered: tuple[int, Any]) -> tuple[int, Any]:
        number, piece = numbered
        return number, worked(self.work, piece)
