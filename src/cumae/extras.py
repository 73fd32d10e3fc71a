"""Packages that only some uses need, and the extras of cumae that install them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from cumae.errors import MissingPackage


@contextlib.contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Name the extra of a package that an import inside this block does not find.

    Parameters
    ----------
    what : str
        The things that need the package, in the plural, for the message.
    extra : str
        The extra of cumae that installs it.

    Raises
    ------
    MissingPackage
        If an import does not find its module.

    Examples
    --------
    >>> from cumae.extras import needing
    >>> with needing("parrots", "birds"):
    ...     import no_such_package
    Traceback (most recent call last):
        ...
    cumae.errors.MissingPackage: parrots need no_such_package: pip install 'cumae[birds]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise MissingPackage(
            f"{what} need {package}: pip install 'cumae[{extra}]'", name=package, extra=extra
        ) from error


class LaterModule:
    """A module that is imported when something in it is first used.

    Parameters
    ----------
    name : str
        Its full name.
    what, extra : str
        As in ``needing``.
    """

    def __init__(self, name: str, what: str, extra: str) -> None:
        self._name, self._what, self._extra = name, what, extra

    def __getattr__(self, wanted: str) -> Any:
        if wanted.startswith("__"):  # Python looks such names up on this object itself
            raise AttributeError(wanted)
        with needing(self._what, self._extra):
            found = getattr(importlib.import_module(self._name), wanted)
        setattr(self, wanted, found)  # the next look-up does not come here
        return found


PARQUET = ("Parquet files", "parquet")
STORE = ("durable oracles and accounts", "store")
POSTGRES = ("oracles in PostgreSQL", "postgres")
PLOT = ("pictures", "plot")
DASK, RAY, SPARK = ("rows on Dask", "dask"), ("rows on Ray", "ray"), ("rows on Spark", "spark")
pa = LaterModule("pyarrow", *PARQUET)
pq = LaterModule("pyarrow.parquet", *PARQUET)
fsspec = LaterModule("fsspec", *PARQUET)
dask = LaterModule("dask", *DASK)
distributed = LaterModule("distributed", *DASK)
ray = LaterModule("ray", *RAY)
spark_sql = LaterModule("pyspark.sql", *SPARK)
pyspark = LaterModule("pyspark", *SPARK)
