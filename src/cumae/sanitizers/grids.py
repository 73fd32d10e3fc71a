"""The grid of public candidates: cuts from declared ranges, or from rows that pay for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.concepts import ConceptClass, Rectangles
from cumae.concepts.candidates.grid import GridRules, count_rules, even_cuts, takes_grid, usual_cuts
from cumae.data import Bounds
from cumae.errors import InvalidParameter
from cumae.parameters import Choice, Count, Or
from cumae.randomness import Source
from cumae.sanitizers.base import share_of
from cumae.sanitizers.quantiles import Quantiles
from cumae.sanitizers.ranges import Ranges

CANDIDATES = Choice(("auto", "grid", "points"))
N_CUTS = Or("auto", Count(1))
SHARE = 20  # one row of so many pays for the cuts of columns without a declared range
WIDTHS = (2, 3)  # columns in which "auto" takes a grid: with one, all points can take part


@claim("GRID")
@dataclass(frozen=True)
class GridPlan:
    """Where the cuts of a grid come from: public numbers alone.

    Parameters
    ----------
    concept : Rectangles or Halfspaces
        The kind of rules.
    bounds : tuple of Bounds or None
        The declared range of each column, if there is one.
    n_cuts : int of 1 or more
        Cuts of each column.
    n_rows : int of 0 or more
        Rows that pay for the cuts of columns without a range, and serve nothing else.
    epsilon : float of 0 or more
        What these rows pay.
    """

    concept: ConceptClass
    bounds: tuple[Bounds | None, ...]
    n_cuts: int
    n_rows: int
    epsilon: float

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing, without the concept class."""
        bounds = [None if each is None else list(each) for each in self.bounds]
        own = {"n_cuts": self.n_cuts, "n_rows": self.n_rows, "epsilon": self.epsilon}
        return {"bounds": bounds, **own}

    @classmethod
    def from_facts(cls, facts: dict[str, Any], concept: ConceptClass) -> GridPlan:
        """Rebuild what ``to_facts`` returned.

        Parameters
        ----------
        facts : dict
            What was stored.
        concept : ConceptClass
            The kind of rules.
        """
        bounds = tuple(None if each is None else tuple(each) for each in facts["bounds"])
        return cls(**{**facts, "concept": concept, "bounds": bounds})

    @property
    def n_rules(self) -> int:
        """Number of candidates."""
        return count_rules(self.concept, len(self.bounds), self.n_cuts)

    @property
    def claims(self) -> tuple[str, ...]:
        """The proofs that its promise rests on."""
        return ("GRID", *(("PAR", "RANGES", "QUANT") if self.n_rows else ()))

    @claim("GRID")
    def rules(self, table: Floats, source: Source) -> GridRules:
        """Return the candidates; rows are looked at only if a column has no range.

        Parameters
        ----------
        table : array of float
            The ``n_rows`` rows that pay.
        source : Source
            Where random bits come from.
        """
        if len(table) != self.n_rows:
            raise AssertionError("other rows were to pay for the cuts")
        cuts = np.zeros((len(self.bounds), self.n_cuts))
        for column, bounds in enumerate(self.bounds):
            if bounds is not None:
                cuts[column] = even_cuts(bounds[0], bounds[1], self.n_cuts)
        unknown = [place for place, bounds in enumerate(self.bounds) if bounds is None]
        if unknown:
            cuts[unknown] = self.cuts(table[:, unknown], source)
        return GridRules(self.concept, cuts)

    @claim("GRID")
    def cuts(self, table: Floats, source: Source) -> Floats:
        """Return private cuts: even ones in a private range, or quantiles within it for boxes.

        Parameters
        ----------
        table : array of float
            Rows that pay ``epsilon``, all of it.
        source : Source
            Where random bits come from.
        """
        boxes = isinstance(self.concept, Rectangles)
        epsilon = share_of(self.epsilon, Fraction(1, 2)) if boxes else self.epsilon
        found = Ranges(epsilon, table.shape[1], random_state=source).find(table)
        if not boxes:
            return np.stack([even_cuts(low, high, self.n_cuts) for low, high, *_ in found])
        drawn = Quantiles(epsilon, found, self.n_cuts, random_state=source).sanitize(table)
        return np.sort(drawn.T, axis=1)


def grid_plan(
    candidates: str,
    n_cuts: int | str,
    concept: ConceptClass,
    bounds: Sequence[Bounds | None],
    epsilon: float,
) -> GridPlan | None:
    """Return where a grid would come from, before it is known how many rows there are.

    Parameters
    ----------
    candidates : {"auto", "grid", "points"}
        ``"auto"`` takes a grid for boxes and halfspaces in two and three columns.
    n_cuts : int of 1 or more, or "auto"
        Cuts of each column.
    concept : ConceptClass
        What is drawn from.
    bounds : sequence of Bounds or None
        The declared range of each column.
    epsilon : float
        What a row may pay that serves nothing but the cuts.

    Returns
    -------
    GridPlan or None
        None if points define the candidates.

    Raises
    ------
    InvalidParameter
        If a grid was asked for that the class does not have.
    """
    width = len(bounds)
    joint = takes_grid(concept, width) and width in WIDTHS
    if candidates == "points" or (candidates == "auto" and not joint):
        if n_cuts != "auto":
            raise InvalidParameter(
                f"n_cuts={n_cuts!r} with candidates that points define; leave it at 'auto', or "
                "take candidates='grid'."
            )
        return None
    count = n_cuts if isinstance(n_cuts, int) else 1
    if n_cuts == "auto" and takes_grid(concept, width):
        count = usual_cuts(concept, width)
    count_rules(concept, width, count)  # refuses other classes, and too many rules
    return GridPlan(concept, tuple(bounds), count, 0, epsilon)


def paying(plan: GridPlan, n_rows: int) -> GridPlan:
    """Let a part of the rows pay for the cuts, if a column has no range."""
    return replace(plan, n_rows=max(1, n_rows // SHARE) if None in plan.bounds else 0)
