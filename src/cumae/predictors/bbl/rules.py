"""All public numbers of GenericBBL: shares, noise and the sizes of every phase."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.errors import InvalidParameter
from cumae.predictors.bbl.costs import (
    NO_DRAW,
    Draw,
    between_pair,
    entering_cost,
    fits,
    label_draw,
    least_noise,
    scored_epsilon,
)
from cumae.predictors.relabelling import check_draw
from cumae.predictors.release.answers import unstable_answers
from cumae.privacy import ZCDP, Approximate, Cost

AUTO_BOOST = 1.5  # of a draw: lets a label count most for what it costs
LABELS_PART = 4  # the draw at the end of a phase gets at most this part of epsilon
SHARES = [2.0 ** (-step / 2) for step in range(26)]  # of queries that are tried
GOOD_NOISE = 0.12  # noise per vote that "auto" aims at
SMALLEST = 5  # rows of a shard
ROWS_PER_DIMENSION = 3  # of a shard, for each VC dimension


@dataclass(frozen=True)
class Wish:
    """What was asked for; "auto" has become None."""

    concept: ConceptClass
    n_rows: int
    vc: int
    most: int  # points that a draw can take in reasonable time
    epsilon: float
    delta: float
    alpha: float
    beta: float
    votes: str
    agnostic: bool
    growth: float
    max_rows: int
    shard_size: int | None
    phase_length: int | None
    train_share: float | None
    query_share: float | None
    label_share: float | None
    epsilon_boost: float | None
    between_share: float | None


@dataclass(frozen=True)
class Sizes:
    """One phase: rows, shards, answers, and what is kept of both at its end."""

    number: int
    rows: int  # |S_i|
    shards: int  # T_i
    answers: int  # R_i
    labels: int  # rows of S_i that are scored in the draw
    following: int  # queries that are kept: rows of the next phase
    between: int  # "between" answers that are paid for
    scale: float  # of the votes' noise


@claim("BBL")
@dataclass(frozen=True)
class Rules:
    """The numbers that do not change from phase to phase, and what rows and queries pay by them."""

    wish: Wish
    first: int  # |S_1|
    boost: float  # epsilon of a draw
    label_share: float
    query_share: float
    first_noise: float
    noise: float
    first_pair: Approximate  # of BetweenThresholds
    pair: Approximate

    @property
    def points(self) -> int:
        """Most points of a draw."""
        return draw_points(self.wish, self.first)

    @property
    def scored(self) -> float:
        """Pure epsilon of the draw at the end of a phase, for a row of that phase."""
        draw = label_draw(self.wish.concept, self.boost, "S", self.points)
        return scored_epsilon(draw, self.label_share)

    def training_cost(self) -> Cost:
        """Cost of a training row, for ever."""
        draw = first_draw(self.wish, self.boost, self.first)
        share = self.first / self.wish.n_rows
        return entering_cost(
            self._votes(self.first_noise, self.first_pair), draw, self.scored, share
        )

    def query_cost(self) -> Cost:
        """Cost of a query or a fresh row of any phase, for ever; votes="between": of fresh rows."""
        draw = label_draw(self.wish.concept, self.boost, "T", self.points)
        votes = self._votes(self.noise, self.pair)
        return entering_cost(votes, draw, self.scored, self.query_share)

    def _votes(self, noise: float, pair: Approximate) -> Cost:
        if self.wish.votes == "between" or noise == 0:
            return pair
        return ZCDP(1 / (2 * noise**2))

    def sizes(self, before: Sizes | None = None) -> Sizes:
        """Return the sizes of the phase after another one, or of the first."""
        wish = self.wish
        number = 1 if before is None else before.number + 1
        rows = self.first if before is None else before.following
        cap = min(wish.max_rows, wish.most // 2)
        share = Fraction(self.query_share)
        if wish.phase_length is None:
            following = max(1, min(cap, math.floor(self._grown(number) * rows)))
            answers = math.ceil(following / share)
        else:
            answers = wish.phase_length
            following = min(cap, math.floor(answers * share))
        labels = min(wish.most // 2, math.floor(Fraction(self.label_share) * rows))
        noise = self.first_noise if number == 1 else self.noise
        scale = noise * math.sqrt(answers) * (1.0 + 1e-12)
        between = unstable_answers(
            answers,
            wish.alpha if wish.between_share is None else wish.between_share,
            wish.beta / 2.0 ** min(number, 900),
        )
        return Sizes(
            number, rows, self._shards(rows, scale), answers, labels, following, between, scale
        )

    def all_sizes(self) -> Iterator[Sizes]:
        """Yield the sizes of the phases until they do not change any more."""
        before, now = None, self.sizes()
        while before is None or replace(before, number=now.number, between=now.between) != now:
            yield now
            before, now = now, self.sizes(now)

    def _grown(self, number: int) -> float:
        """Return by what rows are multiplied; at first so that phases 1 and 2 are equally noisy."""
        growth = self.wish.growth
        if number > 1 or not 0 < self.first_noise < math.inf or not 0 < self.noise < math.inf:
            return growth
        return min(growth, math.sqrt(growth) * self.noise / self.first_noise)

    def _shards(self, rows: int, scale: float) -> int:
        size = self.wish.shard_size
        if size is None:
            least = max(SMALLEST, ROWS_PER_DIMENSION * self.wish.vc)
            size = max(least, int(GOOD_NOISE * rows / scale)) if 0 < scale < math.inf else least
        return max(1, rows // size)


def draw_points(wish: Wish, first: int) -> int:
    """Return the most points that a draw will have: scored rows and kept queries."""
    return min(wish.most, 2 * max(first, wish.max_rows, wish.phase_length or 0))


def first_draw(wish: Wish, boost: float, first: int) -> Draw:
    """Return what relabelling the training rows costs them; nothing if some concept is right."""
    return label_draw(wish.concept, boost, "S", first) if wish.agnostic else NO_DRAW


@claim("BBL")
def plan_rules(wish: Wish) -> Rules:
    """Choose all numbers from what is public, and check that they keep the promise for ever."""
    boost = wish.epsilon_boost
    if boost is None:
        boost = AUTO_BOOST if wish.epsilon < math.inf else math.inf
    check_draw(wish.concept, boost, draw_points(wish, wish.n_rows))
    if wish.epsilon == math.inf:
        return _without_privacy(wish, boost)
    label_share = wish.label_share or _label_share(wish, boost)
    rules = Rules(
        wish,
        wish.n_rows,
        boost,
        label_share,
        1.0,
        math.inf,
        math.inf,
        Approximate(0.0, 0.0),
        Approximate(0.0, 0.0),
    )
    rules = _with_training(rules)
    rules = _with_queries(rules)
    asked = (wish.epsilon, wish.delta)
    if not fits(rules.training_cost(), *asked) or not fits(rules.query_cost(), *asked):
        raise InvalidParameter(
            "these shares and epsilon_boost cost more than "
            f"epsilon={wish.epsilon!r}, delta={wish.delta!r}; leave some of them at 'auto'."
        )
    return rules


def _without_privacy(wish: Wish, boost: float) -> Rules:
    first = wish.n_rows if wish.train_share is None else _part(wish.train_share, wish.n_rows)
    if wish.agnostic:
        first = min(first, wish.most)
    nothing = Approximate(math.inf, 0.0)
    share = 1.0 if wish.query_share is None else wish.query_share
    labels = 1.0 if wish.label_share is None else wish.label_share
    return Rules(wish, first, boost, labels, share, 0.0, 0.0, nothing, nothing)


def _label_share(wish: Wish, boost: float) -> float:
    """Return the share of a phase's rows that a draw needs for an error of alpha/2 (Lemma C.2).

    At most so many that it costs the LABELS_PART-th part of epsilon.
    """
    rows = wish.n_rows
    candidates = wish.vc * math.log(math.e * 4 * max(rows, wish.vc) / wish.vc)
    needed = 2 / boost * (candidates + math.log(2 / wish.beta)) / (wish.alpha / 2)
    draw = label_draw(wish.concept, boost, "S", draw_points(wish, rows))
    most = math.expm1(wish.epsilon / LABELS_PART) / math.expm1(min(draw.pure, 700.0))
    return min(1.0, needed / rows, most)


def _with_training(rules: Rules) -> Rules:
    """Choose how many training rows are used, and the noise of the first phase.

    Without relabelling, all of them; else the number with the least noise for each of the rows.
    """
    wish = rules.wish
    tried = SHARES if wish.agnostic else [1.0]
    if wish.train_share is not None:
        tried = [wish.train_share]
    best, chosen = 0.0, rules
    for share in tried:
        first = _part(share, wish.n_rows)
        if wish.agnostic:
            first = min(first, wish.most)
        draw = first_draw(wish, rules.boost, first)
        value, found = _first_votes(replace(rules, first=first), draw, coarse=len(tried) > 1)
        if value > best:
            best, chosen = value, found
    if best == 0:
        raise InvalidParameter(
            f"epsilon={wish.epsilon!r}, delta={wish.delta!r} leave nothing for the votes of the "
            "training rows; allow more, or smaller label_share, epsilon_boost and train_share."
        )
    draw = first_draw(wish, chosen.boost, chosen.first)
    return _first_votes(chosen, draw, coarse=False)[1]


def _first_votes(rules: Rules, draw: Draw, *, coarse: bool) -> tuple[float, Rules]:
    wish, share = rules.wish, rules.first / rules.wish.n_rows
    given = (wish.epsilon, wish.delta, draw, rules.scored, share)
    if wish.votes == "between":
        pair = between_pair(*given)
        return share * pair.eps, replace(rules, first_pair=pair)
    noise = least_noise(*given, coarse=coarse)
    return share / noise, replace(rules, first_noise=noise)


def _with_queries(rules: Rules) -> Rules:
    """Choose the share of queries that are kept, and the noise of all later phases.

    A smaller share allows less noise, but longer phases. The best is the largest share divided by
    the noise: the noise per vote of the first two phases goes with its root.
    """
    wish = rules.wish
    tried = SHARES if wish.query_share is None else [wish.query_share]
    best, chosen = 0.0, rules
    for share in tried:
        value, found = _later_votes(replace(rules, query_share=share), coarse=len(tried) > 1)
        if value > best:
            best, chosen = value, found
        elif best > 0:
            break  # it rises, then falls
    if best == 0:
        raise InvalidParameter(
            f"epsilon={wish.epsilon!r}, delta={wish.delta!r} leave nothing for the votes of the "
            "kept queries; allow more, or smaller query_share, label_share and epsilon_boost."
        )
    return _later_votes(chosen, coarse=False)[1]


def _later_votes(rules: Rules, *, coarse: bool) -> tuple[float, Rules]:
    wish, share = rules.wish, rules.query_share
    draw = label_draw(wish.concept, rules.boost, "T", rules.points)
    given = (wish.epsilon, wish.delta, draw, rules.scored, share)
    if wish.votes == "between":
        pair = between_pair(*given)
        return share * pair.eps, replace(rules, pair=pair)
    noise = least_noise(*given, coarse=coarse)
    return share / noise, replace(rules, noise=noise)


def _part(share: float, rows: int) -> int:
    return max(1, math.floor(Fraction(share) * rows))


# The paper's sizes
