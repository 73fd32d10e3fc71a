"""The behaviour with fewer rows than a paper asks for."""

from __future__ import annotations

from cumae.errors import InvalidData


def need_rows(n_rows: int, needed: int) -> None:
    """Refuse too few rows, with the number that the paper asks for.

    Parameters
    ----------
    n_rows : int
        Labelled rows that there are.
    needed : int
        Labelled rows that the paper asks for.

    Raises
    ------
    InvalidData
        If there are fewer rows than that.

    Examples
    --------
    >>> from cumae.theorems.rows import need_rows
    >>> need_rows(1_000, 646)
    >>> need_rows(100, 646)
    Traceback (most recent call last):
    cumae.errors.InvalidData: 100 rows are too few for constants='paper', which asks for 646 \
labelled rows; take constants='practical'.
    """
    if n_rows < needed:
        about = f" (about {needed:.1e})" if needed > HARD_TO_READ else ""
        raise InvalidData(
            f"{n_rows:,} rows are too few for constants='paper', which asks for {needed:,}{about} "
            "labelled rows; take constants='practical'.",
            needed_rows=needed,
        )


HARD_TO_READ = 10**12
