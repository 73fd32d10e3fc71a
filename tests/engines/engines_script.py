"""Checks an engine on workers of its own; run by the Python of its environment: dask, ray or spark.

It prints what it found as JSON. Workers are processes of this machine, and are gone at the end.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cumae import Budget, ParquetRows, PrivateLogisticRegression
from cumae.checks import pieces_do_not_change_the_sum
from cumae.engines import Dask, EngineRows, Here, Pieces, Ray, RowEngine, Spark, cut, rows_on

SECRET = 31.4159
CUTS = ((1, 2, 29, 29, 350, 400),)
DECLARED: dict[str, Any] = {"age": (0, 100), "job": ["nurse", "poet", None], "dose": (0, 1)}
FIRST_VISITS, PARTS = 7, 4  # pieces that are read before a worker dies; pieces of the table


def frame(count: int = 2_000) -> pd.DataFrame:
    coins = np.random.default_rng(3)
    age = coins.integers(0, 101, count)
    job = coins.choice(np.array(["nurse", "poet", None], dtype=object), count)
    ill = (age > 50) != (job == "poet")
    table = {"age": age, "job": job, "dose": coins.random(count), "ill": ill * 1}
    return pd.DataFrame(table | {"wage": age * 30.0 + 7})


@dataclass(frozen=True)
class Dying:
    """A piece whose worker dies when the pieces of the table have been read so many times."""

    piece: Any
    folder: str

    def blocks(self) -> Iterator[Any]:
        for visit in range(10_000):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(f"{self.folder}/{visit}", os.O_CREAT | os.O_EXCL))
                break
        if visit == FIRST_VISITS:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from self.piece.blocks()


def process(blocks: Any) -> int:
    for _ in blocks:
        pass
    return os.getpid()


def tell(table: Any) -> Any:
    raise KeyError(f"{SECRET} is not there")


def logistic(**given: Any) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(
        5.0, 1e-6, columns=DECLARED, n_steps=2, random_state=1, **given
    )


def same(one: Any, other: Any) -> bool:
    return bool(json.dumps(one.to_dict()) == json.dumps(other.to_dict()))


def checked(engine: RowEngine, native: Callable[[pd.DataFrame], Any]) -> dict[str, Any]:
    """Return what is found on an engine."""
    found: dict[str, Any] = {}
    pieces_do_not_change_the_sum(engine, CUTS)
    found["law"] = True
    table = frame()
    inside = table.drop(columns="wage")
    here = logistic().fit(inside.drop(columns="ill"), inside["ill"])

    with tempfile.TemporaryDirectory() as folder:
        given = rows_on(Here(), inside)
        size = len(inside) // PARTS
        parts = [rows_on(Here(), inside.iloc[n * size : (n + 1) * size]) for n in range(PARTS)]
        pieces = [Dying(part.table[0], folder) for part in parts]
        # Rows are numbered for messages only.
        dying = EngineRows(
            engine, engine.hold(pieces), [size] * PARTS, given.names, given.kinds, given.whole
        )
        budget = Budget(5.0, 1e-6)
        model = logistic(budget=budget).fit(dying, "ill")
        found["died"] = len(list(Path(folder).iterdir())) > FIRST_VISITS
        found["model after a death"] = same(model, here)
        found["payments"] = len(budget.entries)

    native_rows = native(inside)
    found["its own frames"] = same(logistic().fit(native_rows, "ill"), here)
    return found | after_keeping(engine, inside, here) | errors(engine, inside)


def after_keeping(engine: RowEngine, table: pd.DataFrame, here: Any) -> dict[str, Any]:
    """Kill a worker that keeps pieces, between two sums."""
    kept, killed = Pieces.kept, []

    def kept_and_killed(self: Pieces) -> Pieces:
        made = kept(self)
        killed.append(min(who for _, who in made.results(process)))
        os.kill(killed[0], signal.SIGKILL)
        return made

    Pieces.kept = kept_and_killed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            table.to_parquet(Path(folder) / "rows.parquet", row_group_size=700)
            rows = rows_on(engine, ParquetRows(folder))
            model = logistic().fit(rows, "ill")
    finally:
        Pieces.kept = kept  # type: ignore[method-assign]
    # How columns were read differs: files tell types of whole numbers.
    asked = table.drop(columns="ill")
    equal = np.array_equal(model.decision_function(asked), here.decision_function(asked))
    return {"killed": len(killed), "model of files": bool(equal)}


def errors(engine: RowEngine, table: pd.DataFrame) -> dict[str, Any]:
    """Return what errors say about rows."""
    said = {}
    try:
        cut(np.arange(40), engine=engine, rows=20).sum(tell)
    except Exception as error:  # noqa: BLE001 - whatever it is
        said["failed"] = f"{type(error).__name__}: {error} {error.__cause__}"
    wrong = table.copy()
    wrong.loc[1_234, "dose"] = np.nan
    try:
        logistic().fit(rows_on(engine, wrong), "ill")
    except Exception as error:  # noqa: BLE001 - whatever it is
        said["missing"] = f"{type(error).__name__}: {error}"
    return said


@contextlib.contextmanager
def on_dask() -> Iterator[tuple[RowEngine, Callable[[pd.DataFrame], Any]]]:
    frames, home = importlib.import_module("dask.dataframe"), importlib.import_module("distributed")
    # Workers that start anew are copies of a process that has imported everything.
    importlib.import_module("dask").config.set(
        {
            "distributed.worker.multiprocessing-method": "forkserver",
            "distributed.deploy.lost-worker-timeout": "300s",  # else it is given up after 15
        }
    )
    home.utils.get_mp_context().set_forkserver_preload(["distributed", "__main__"])
    how: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None}
    with home.LocalCluster(n_workers=2, **how) as cluster, home.Client(cluster) as client:
        yield Dask(client), lambda table: frames.from_pandas(table, npartitions=3)
        client.wait_for_workers(2)  # one that starts while all are stopped would be waited for


@contextlib.contextmanager
def on_ray() -> Iterator[tuple[RowEngine, Callable[[pd.DataFrame], Any]]]:
    ray = importlib.import_module("ray")
    room = 100 * 2**20
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=room)
    made = importlib.import_module("ray.data").from_pandas

    def data(table: pd.DataFrame) -> Any:
        return made([table.iloc[:900], table.iloc[900:]])

    yield Ray(), data
    ray.shutdown()


@contextlib.contextmanager
def on_spark() -> Iterator[tuple[RowEngine, Callable[[pd.DataFrame], Any]]]:
    from cumae.engines.on_spark import start_spark

    session = start_spark("local[2,4]")

    def data(table: pd.DataFrame) -> Any:
        rows = [tuple(row) for row in table.itertuples(index=False)]
        rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in rows]
        return session.createDataFrame(rows, "age long, job string, dose double, ill long")

    yield Spark(session), data
    session.stop()


def main() -> None:
    engines = {"dask": on_dask, "ray": on_ray, "spark": on_spark}
    with engines[sys.argv[1]]() as (engine, native):
        print(json.dumps(checked(engine, native)))


if __name__ == "__main__":
    main()
