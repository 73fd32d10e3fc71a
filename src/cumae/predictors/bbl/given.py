"""The input of GenericBBL: its parameters and public counts, as one frozen value."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.relabelling import ANY_NUMBER, most_points
from cumae.errors import InvalidParameter
from cumae.predictors.base import Training
from cumae.predictors.bbl.costs import NO_DRAW, Draw, label_draw
from cumae.predictors.stateful import check_votes
from cumae.privacy import Approximate
from cumae.privacy.guarantee import ENDLESS
from cumae.privacy.plans import Plan
from cumae.sanitizers.grids import GridPlan

RELATION = (
    "is replaced by any other, and the number of rows and the number and order of queries are "
    "public"
)
SEEN = "an answer, or the refusal of a batch, is seen by the one who asked, and by nobody else"
STATE = (
    "queries need no protection: BetweenThresholds keeps a state, so that what one asked shows in "
    "when it halts for the others"
)
MOST_EPSILON = 500.0


@dataclass(frozen=True)
class PublicCounts:
    """The facts about the rows that are known before any of them is read.

    Parameters
    ----------
    n_rows : int
        Training rows, without those that serve the cuts of a grid alone.
    vc : int
        VC dimension of the class for rows of this width.
    most : int
        Points that a draw of labels can take in reasonable time.
    """

    n_rows: int
    vc: int
    most: int

    @classmethod
    def of(cls, training: Training, grid: GridPlan | None) -> PublicCounts:
        """Read them off the declared facts."""
        if grid is not None:
            rows = max(1, training.rows.n_rows - grid.n_rows)  # one row is refused as too few
            return cls(rows, training.vc_dimension, ANY_NUMBER)
        most = most_points(training.model, training.width)
        return cls(training.rows.n_rows, training.vc_dimension, most)


@claim("BBL")
@dataclass(frozen=True)
class BBLOptions:
    """Parameters of GenericBBL, in which "auto" has become None, and public counts."""

    counts: PublicCounts
    concept: ConceptClass
    epsilon: float
    delta: float
    alpha: float
    beta: float
    votes: str
    agnostic: bool
    fresh: bool
    growth: float
    max_rows: int
    shard_size: int | None
    phase_length: int | None
    train_share: float | None
    query_share: float | None
    label_share: float | None
    epsilon_boost: float | None
    between_share: float | None
    grid: GridPlan | None = None

    def __post_init__(self) -> None:
        """Refuse parameters with which no phase can keep the promise."""
        check_votes(self.epsilon, self.delta)
        if MOST_EPSILON < self.epsilon < math.inf:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r} is beyond {MOST_EPSILON:g}, where floats cannot tell "
                "what relabelling costs; give less, or infinity for no privacy at all."
            )
        if self.epsilon_boost == math.inf and self.epsilon < math.inf:
            raise InvalidParameter(
                "epsilon_boost=inf costs more than any epsilon; give 1.0, for example."
            )

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing, without the concept class."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        del own["concept"]
        grid = None if self.grid is None else self.grid.to_facts()
        return {**own, "counts": asdict(self.counts), "grid": grid}

    @classmethod
    def from_facts(cls, facts: dict[str, Any], concept: ConceptClass) -> BBLOptions:
        """Rebuild what ``to_facts`` returned."""
        grid = facts["grid"]
        made = {
            "counts": PublicCounts(**facts["counts"]),
            "grid": None if grid is None else GridPlan.from_facts(grid, concept),
        }
        return cls(**{**facts, **made}, concept=concept)

    @property
    def drawn_from(self) -> ConceptClass | None:
        """The source of a draw, which decides its cost: a class, or None for public candidates."""
        return self.concept if self.grid is None else None

    @property
    def split_share(self) -> float:
        """Share of split votes that BetweenThresholds is paid for."""
        return self.alpha if self.between_share is None else self.between_share

    def draw_points(self, first: int) -> int:
        """Return the most points that a draw has after so many first rows: scored and kept."""
        return min(self.counts.most, 2 * max(first, self.max_rows, self.phase_length or 0))

    def first_draw(self, boost: float, first: int) -> Draw:
        """Return what relabelling the training rows costs; nothing if some concept is right."""
        return label_draw(self.drawn_from, boost, "S", first) if self.agnostic else NO_DRAW

    def plan(self) -> Plan:
        """Return what will be promised, and for what: noise is calibrated to all of epsilon."""
        claims = ["BBL", "LB", "SUB", "SHARDS", "ZCDP", "COMP"]
        claims += ["CHOOSE"] if self.grid is None else self.grid.claims
        claims += ["BT"] if self.votes == "between" else ["MULTI", "NOISE"]
        what = ["one training row"]
        what += ["one query"] * (self.votes == "stateless") + ["one unlabelled row"] * self.fresh
        protected = " or ".join([", ".join(what[:-1]), what[-1]] if len(what) > 1 else what)
        assumptions = (STATE,) if self.votes == "between" else (SEEN,)
        cost = Approximate(self.epsilon, 0.0 if self.epsilon == math.inf else self.delta)
        relation = f"{protected} {RELATION}"
        return Plan(cost, tuple(claims), protected, relation, assumptions, covers=ENDLESS)
