"""The cost to label rows by a drawn hypothesis, for every concept class."""

from __future__ import annotations

import math

from cumae.claims import claim
from cumae.concepts.base import LARGEST_ERROR, ConceptClass
from cumae.concepts.halfspaces import Halfspaces
from cumae.concepts.projections import Projections
from cumae.concepts.rectangles import Rectangles
from cumae.errors import InvalidParameter
from cumae.privacy.cost import Approximate, Pure
from cumae.privacy.transforms import Bootstrapped, label_boost, subsample

UP = 1.0 + 1e-12


ANY_NUMBER = 10**9  # of points of a draw: more rows than there are
EPSILONS = [round(0.1 * 1.15**i, 3) for i in range(45)]  # tried for the draw: 0.1 to 47


@claim("ITER")
def sampled(pair: Approximate, kept: int, rows: int) -> Approximate:
    """Return what a pair costs on a uniform subset of the rows in random order.

    Parameters
    ----------
    pair : Approximate
        What it costs on all of them.
    kept, rows : int of 1 or more
        Size of the subset, and number of rows.
    """
    if kept == rows:
        return pair
    rate = kept / rows
    return Approximate(subsample(Pure(pair.eps), rate).pure, rate * pair.failure * UP)


@claim("ITER")
def relabelled(
    pair: Approximate, epsilon: float, role: str, concept: ConceptClass | None, size: int
) -> Approximate:
    """Return what a pair costs after a draw that labels the rows, for a row of S or of T.

    Parameters
    ----------
    pair : Approximate
        What it costs on rows that have labels.
    epsilon : float of 0 or more
        Privacy parameter of the draw.
    role : {"S", "T"}
        Whose cost is asked for: "S" for a row that scores candidates, "T" for a point that
        defines them.
    concept : ConceptClass or None
        What the hypothesis is drawn from; None stands for public candidates, drawn exactly (GRID).
    size : int of 1 or more
        Number of rows, which bounds the rounding errors of the draw.
    """
    if concept is None:
        cost = label_boost(Pure(pair.eps), epsilon, role, 1)
        return Approximate(cost.pure, pair.failure)
    if concept.label_boost_k is None:
        raise InvalidParameter(
            f"{type(concept).__name__} cannot boost labels: it is not known how far one point can "
            "move its candidates. Take another class, or GenericLearner, which needs no such bound."
        )
    error = concept.weight_error(size, epsilon / 2)
    if not error <= LARGEST_ERROR:
        raise InvalidParameter(
            f"epsilon={epsilon!r} for a draw from {size:,} rows is more than floats can draw with; "
            "give less, or fewer rows."
        )
    if error > 0:
        off = 2 * (math.log1p(error) - math.log1p(-error)) * UP
        epsilon = off + max(epsilon, off) if role == "S" else 2 * off
        role = "S"
    cost = label_boost(Pure(pair.eps), epsilon, role, concept.label_boost_k)
    return Approximate(cost.pure, pair.failure)


@claim("ITER")
def resampled(pair: Approximate, rows: int) -> Approximate:
    """Return what a pair costs on as many rows, drawn with replacement."""
    if rows == 1:
        return pair
    epsilon, factor = Bootstrapped(pair, rows, rows).mixture(pair.eps)
    return Approximate(epsilon, min(factor * pair.failure * UP, math.nextafter(1.0, 0.0)))


def largest_rate(pair: Approximate, epsilon: float, delta: float) -> float:
    """Return the largest share of the rows on which a pair costs at most (epsilon, delta).

    Parameters
    ----------
    pair : Approximate
        What it costs on all rows.
    epsilon, delta : float
        What it may cost.
    """
    if math.isinf(epsilon):
        return 1.0
    with_epsilon = math.expm1(min(epsilon, 700.0)) / math.expm1(min(max(pair.eps, 1e-300), 700.0))
    with_delta = delta / pair.failure if pair.failure > 0 else 1.0
    return min(1.0, with_epsilon, with_delta)


def most_points(concept: ConceptClass, width: int) -> int:
    """Return how many points a schedule may choose, so that a draw takes half a minute at most."""
    for kind, most in DRAWN_TOGETHER.items():
        if isinstance(concept, kind):
            return most.get(width, most[3])
    return ANY_NUMBER


def most_public(concept: ConceptClass, width: int) -> int:
    """Return how many public points a draw is given, so that it takes seconds."""
    return LARGEST_JOINT.get(width, 100) if isinstance(concept, JOINT) else ANY_NUMBER


JOINT = (Halfspaces, Projections, Rectangles)  # candidates depend on columns together


# Points that define candidates, by the number of columns: a draw takes up to half a minute.
DRAWN_TOGETHER: dict[type[ConceptClass], dict[int, int]] = {
    Halfspaces: {1: 10_000, 2: 12_000, 3: 500},
    Projections: {1: 10_000, 2: 2_000, 3: 100},
    Rectangles: {1: 10_000, 2: 12_000, 3: 250},
}

# With more points a draw takes seconds. Public rows above this number are left out, the last first.
LARGEST_JOINT = {1: 10_000, 2: 2_000, 3: 100}
