"""Checks that each phase of GenericBBL is affordable, and its noise: public numbers alone."""

from __future__ import annotations

import itertools
import math

from cumae.concepts.candidates.grid import GRIDDED
from cumae.concepts.candidates.relabelling import ANY_NUMBER
from cumae.errors import InvalidData, InvalidParameter, TooFewRows, warn
from cumae.mechanisms import Between
from cumae.predictors.bbl.phases import votes_of
from cumae.predictors.bbl.rules import MOST_PHASES, BBLRules, PhaseSizes
from cumae.predictors.noise import AIMED_NOISE, MUCH_NOISE

LEAST_ROWS = 4  # of a phase
HOPELESS_NOISE = 1.0  # per vote: with it a unanimous vote loses three times in ten


def check_phases(rules: BBLRules) -> tuple[float, PhaseSizes]:
    """Refuse sizes that some phase cannot have, from public numbers, before anything is paid.

    Return the noise per vote of the noisiest phase, and that phase.
    """
    phases = list(itertools.islice(rules.all_sizes(), MOST_PHASES))
    for sizes in phases:
        _check_sizes(rules, sizes)
    if rules.given.votes == "between":
        looked_at = (*phases[:2], phases[-1])
        found = [(_half_gap(rules, sizes) / sizes.shards, sizes) for sizes in looked_at]
    else:
        found = [(sizes.scale / sizes.shards, sizes) for sizes in phases]
        later = [pair for pair in found if pair[1].number > 1] or found
        noise, best = min(later, key=lambda pair: pair[0])
        # With more rows, or a longer life, a warning is enough: here neither would help.
        if noise > HOPELESS_NOISE and _limited(rules):
            raise InvalidData(
                f"the noise would be {noise:.0%} of the {best.shards:,} votes of phase "
                f"{best.number}, and no later phase has less, so that answers would be noise. "
                f"{_cause(rules)}"
            )
    return max(found, key=lambda pair: pair[0])


def _limited(rules: BBLRules) -> bool:
    """Tell whether a phase has as few rows as it has because a draw takes no more points."""
    given = rules.given
    return given.counts.most < ANY_NUMBER and given.counts.most // 2 < given.max_rows


def _cause(rules: BBLRules) -> str:
    """Return why phases are as small as they are, and what would help."""
    given, most = rules.given, rules.given.counts.most
    if _limited(rules):
        grid = "candidates='grid', or " if isinstance(given.concept, GRIDDED) else ""
        return (
            f"Where points define the candidates, a draw from {type(given.concept).__name__} takes "
            f"{most:,} of them, so that a phase has {most // 2:,} rows, however many are given. "
            f"Take {grid}EverlastingPredictor, which has no such limit."
        )
    return (
        "Give more rows, a larger epsilon, or a larger phase_length, max_rows, growth, query_share "
        "or label_share; EverlastingPredictor needs fewer rows for the same noise."
    )


def _half_gap(rules: BBLRules, sizes: PhaseSizes) -> float:
    """Return how far from half of the votes a threshold lies; refuse too few votes for it."""
    try:
        votes = votes_of(rules, sizes)
    except InvalidParameter:  # its text speaks of parameters that are not here
        given = rules.given
        raise InvalidParameter(
            f"votes='between' with epsilon={given.epsilon!r}, delta={given.delta!r}: the "
            f"{sizes.shards:,} votes of phase {sizes.number}, of shards of "
            f"{sizes.rows // sizes.shards:,} rows, are too few to pay for {sizes.between:,} split "
            "ones; give a smaller shard_size, a larger epsilon, a between_share below "
            f"{given.split_share:g}, a smaller phase_length or more rows, or votes='stateless'."
        ) from None
    if not isinstance(votes, Between):
        raise AssertionError("other votes were asked for")
    return (votes.upper - votes.lower) / 2


def _check_sizes(rules: BBLRules, sizes: PhaseSizes) -> None:
    if sizes.rows < LEAST_ROWS or sizes.following < LEAST_ROWS or sizes.labels < 1:
        raise InvalidData(
            f"phase {sizes.number} would have {sizes.rows:,} rows, score {sizes.labels:,} of them "
            f"and keep {sizes.following:,} of {sizes.answers:,} queries: too few. {_cause(rules)}"
        )


def warn_of_noise(rules: BBLRules, noise: float, worst: PhaseSizes) -> None:
    """Warn if the noisiest phase has so much noise per vote that answers are hardly any good."""
    if noise <= MUCH_NOISE:
        return
    if rules.given.votes == "between":
        message = (
            f"thresholds lie {noise:.2f} of the {worst.shards:,} votes of phase {worst.number} "
            "from their middle; what is not clearer counts as split, and it halts for ever "
            f"after {worst.between:,} of those. Give a smaller shard_size or between_share, a "
            "larger epsilon, or more rows with the same phase_length."
        )
    else:
        wanted = math.ceil(worst.rows * (noise / AIMED_NOISE) ** 2)
        message = (
            f"the noise is {noise:.0%} of the {worst.shards} votes of phase {worst.number}, so "
            f"that answers are hardly better than chance; with about {wanted:,} rows in a "
            f"phase they would be good. {_cause(rules)}"
        )
    warn(message, TooFewRows)
