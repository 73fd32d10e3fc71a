"""All public numbers of GenericBBL: shares, noise and the sizes of every phase."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.errors import InvalidParameter
from cumae.mechanisms.sparse import unstable_answers
from cumae.predictors.bbl.costs import (
    Draw,
    between_pair,
    entering_cost,
    fits,
    label_draw,
    least_noise,
    scored_epsilon,
)
from cumae.predictors.bbl.given import BBLOptions
from cumae.predictors.noise import AIMED_NOISE, GOOD_NOISE
from cumae.privacy import ZCDP, Approximate, Cost
from cumae.theorems.everlasting import paper_rows
from cumae.theorems.rows import need_rows

AUTO_BOOST = 1.5  # of a draw: lets a label count most for what it costs
MOST_FOR_LABELS = 1 / 4  # share of epsilon that the draw at the end of a phase may cost
SHARES = [2.0 ** (-step / 2) for step in range(26)]  # of queries that are tried
SMALLEST = 5  # rows of a shard
MOST_PHASES = 1_000  # that are looked at: sizes that change for longer change little by little
ROWS_PER_DIMENSION = 3  # of a shard, for each VC dimension, at least
ENOUGH_PER_DIMENSION = 8  # up to which more noise is accepted for more rows
NOTHING = Approximate(0.0, 0.0)


@dataclass(frozen=True)
class PhaseSizes:
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
class BBLRules:
    """The numbers that do not change from phase to phase, and what rows and queries pay by them.

    Parameters
    ----------
    given : BBLOptions
        Parameters and public counts.
    first : int
        Rows of the first phase.
    boost : float
        Epsilon of a draw of labels.
    label_share, query_share : float
        Share of a phase's rows that are scored, and of its queries that are kept.
    first_noise, noise : float
        Noise of the votes in the first and in later phases, divided by the square root of the
        number of answers.
    first_pair, pair : Approximate
        What BetweenThresholds may cost in the first and in later phases.
    """

    given: BBLOptions
    first: int  # |S_1|
    boost: float
    label_share: float
    query_share: float
    first_noise: float
    noise: float
    first_pair: Approximate
    pair: Approximate

    @classmethod
    @claim("BBL")
    def of(cls, given: BBLOptions, *, paper: bool) -> BBLRules:
        """Choose all numbers from what is public, and check that they keep the promise for ever.

        Parameters
        ----------
        given : BBLOptions
            Parameters and public counts.
        paper : bool
            Whether ``constants="paper"`` was asked for.

        Raises
        ------
        InvalidParameter
            If no numbers keep the promise.
        InvalidData
            If ``constants="paper"`` asks for more rows, as it always does.
        """
        counts = given.counts
        if paper:
            asked = (given.alpha, given.beta, given.epsilon, given.delta, counts.vc)
            need_rows(counts.n_rows, paper_rows(*asked))
        boost = given.epsilon_boost
        if boost is None:
            boost = AUTO_BOOST if given.epsilon < math.inf else math.inf
        if given.grid is None:
            given.concept.check_draw(boost, given.draw_points(counts.n_rows))
        if given.epsilon == math.inf:
            return _without_privacy(given, boost)
        rules = _scored_enough(given, boost)
        promised = (given.epsilon, given.delta)
        if not fits(rules.training_cost(), *promised) or not fits(rules.query_cost(), *promised):
            raise InvalidParameter(
                "these shares and epsilon_boost cost more than "
                f"epsilon={given.epsilon!r}, delta={given.delta!r}; leave some of them at 'auto'."
            )
        return rules

    def to_facts(self) -> dict[str, Any]:
        """Return them for storing, without the concept class."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        pairs = {name: asdict(own[name]) for name in ("first_pair", "pair")}
        return {**own, **pairs, "given": self.given.to_facts()}

    @classmethod
    def from_facts(cls, facts: dict[str, Any], concept: ConceptClass) -> BBLRules:
        """Rebuild what ``to_facts`` returned."""
        pairs = {name: Approximate(**facts[name]) for name in ("first_pair", "pair")}
        return cls(**{**facts, **pairs, "given": BBLOptions.from_facts(facts["given"], concept)})

    @property
    def points(self) -> int:
        """Most points of a draw."""
        return self.given.draw_points(self.first)

    @property
    def scored(self) -> float:
        """Pure epsilon of the draw at the end of a phase, for a row of that phase."""
        draw = label_draw(self.given.drawn_from, self.boost, "S", self.points)
        return scored_epsilon(draw, self.label_share)

    def training_cost(self) -> Cost:
        """Cost of a training row, for ever."""
        draw = self.given.first_draw(self.boost, self.first)
        share = self.first / self.given.counts.n_rows
        return entering_cost(
            self._votes(self.first_noise, self.first_pair), draw, self.scored, share
        )

    def query_cost(self) -> Cost:
        """Cost of a query or a fresh row of any phase, for ever; votes="between": of fresh rows."""
        draw = label_draw(self.given.drawn_from, self.boost, "T", self.points)
        votes = self._votes(self.noise, self.pair)
        return entering_cost(votes, draw, self.scored, self.query_share)

    def _votes(self, noise: float, pair: Approximate) -> Cost:
        if self.given.votes == "between" or noise == 0:
            return pair
        return ZCDP(1 / (2 * noise * noise))

    def sizes(self, before: PhaseSizes | None = None) -> PhaseSizes:
        """Return the sizes of the phase after another one, or of the first."""
        given = self.given
        number = 1 if before is None else before.number + 1
        rows = self.first if before is None else before.following
        cap = min(given.max_rows, given.counts.most // 2)
        share = Fraction(self.query_share)
        if given.phase_length is None:
            following = max(1, min(cap, math.floor(self._grown(number) * rows)))
            answers = math.ceil(following / share)
        else:
            answers = given.phase_length
            following = min(cap, math.floor(answers * share))
        labels = min(given.counts.most // 2, math.floor(Fraction(self.label_share) * rows))
        noise = self.first_noise if number == 1 else self.noise
        scale = noise * math.sqrt(answers) * (1.0 + 1e-12)
        between = unstable_answers(
            answers,
            given.split_share,
            given.beta / 2.0 ** min(number, 900),
        )
        return PhaseSizes(
            number, rows, self._shards(rows, scale), answers, labels, following, between, scale
        )

    def all_sizes(self) -> Iterator[PhaseSizes]:
        """Yield the sizes of the phases until they do not change any more."""
        before, now = None, self.sizes()
        while before is None or replace(before, number=now.number, between=now.between) != now:
            yield now
            before, now = now, self.sizes(now)

    def answers_after(self, sizes: PhaseSizes, rows: int) -> int:
        """Return how many answers can be given after a phase, if so many fresh rows wait."""
        left = 0
        while rows >= sizes.answers:
            rows -= sizes.answers
            sizes = self.sizes(sizes)
            left += sizes.answers
        return left

    def _grown(self, number: int) -> float:
        """Return by which factor the next phase has more rows.

        After the first phase it is chosen so that phases 1 and 2 are equally noisy.
        """
        growth = self.given.growth
        if number > 1 or not 0 < self.first_noise < math.inf or not 0 < self.noise < math.inf:
            return growth
        return min(growth, math.sqrt(growth) * self.noise / self.first_noise)

    def _shards(self, rows: int, scale: float) -> int:
        size, vc = self.given.shard_size, self.given.counts.vc
        if size is None:
            size = max(SMALLEST, ROWS_PER_DIMENSION * vc)
            if 0 < scale < math.inf:
                aimed, good = (int(noise * rows / scale) for noise in (AIMED_NOISE, GOOD_NOISE))
                # Boxes of few rows are too small: they gain more by rows than they lose by noise.
                size = max(size, aimed, min(good, ENOUGH_PER_DIMENSION * vc))
        return max(1, rows // size)


def _without_privacy(given: BBLOptions, boost: float) -> BBLRules:
    share = 1.0 if given.query_share is None else given.query_share
    labels = 1.0 if given.label_share is None else given.label_share
    first = _first_rows(given, 1.0 if given.train_share is None else given.train_share)
    nothing = Approximate(math.inf, 0.0)
    return BBLRules(given, first, boost, labels, share, 0.0, 0.0, nothing, nothing)


def _scored_enough(given: BBLOptions, boost: float) -> BBLRules:
    """Choose all numbers, with a share of scored rows that is enough in the smallest phase."""
    none = (math.inf, math.inf, NOTHING, NOTHING)
    rows = min(given.counts.n_rows, given.max_rows, given.counts.most // 2)
    while True:
        labels = given.label_share or _label_share(given, boost, rows)
        unknown = BBLRules(given, given.counts.n_rows, boost, labels, 1.0, *none)
        rules = _with_queries(_with_training(unknown))
        smallest = min(sizes.rows for sizes in islice(rules.all_sizes(), MOST_PHASES))
        # More scored rows leave less for votes, which may make phases smaller in turn.
        if given.label_share is not None or labels == 1 or smallest >= 0.9 * rows:
            return rules
        rows = smallest


def _label_share(given: BBLOptions, boost: float, rows: int) -> float:
    """Return the share of a phase's rows that a draw needs for a small error (Lemma C.2).

    It is alpha/2 where points define the candidates. A rule on a grid has to be found again and
    again, among others nearby: alpha/10. The share is cut so that the draw costs a quarter of
    epsilon at most.
    """
    vc = given.counts.vc
    if given.grid is None:
        candidates, error = vc * math.log(math.e * 4 * max(rows, vc) / vc), given.alpha / 2
    else:
        candidates, error = math.log(given.grid.n_rules), given.alpha / 10
    needed = 2 / boost * (candidates + math.log(2 / given.beta)) / error
    draw = label_draw(given.drawn_from, boost, "S", given.draw_points(given.counts.n_rows))
    most = math.expm1(given.epsilon * MOST_FOR_LABELS) / math.expm1(min(draw.pure, 700.0))
    return min(1.0, needed / max(1, rows), most)


def _with_training(rules: BBLRules) -> BBLRules:
    """Choose how many training rows are used, and the noise of the first phase.

    Without relabelling, all of them; else the number with the least noise for each of the rows.
    """
    given = rules.given
    candidates = SHARES if given.agnostic else [1.0]
    if given.train_share is not None:
        candidates = [given.train_share]
    best, chosen = 0.0, rules
    for share in candidates:
        found = replace(rules, first=_first_rows(given, share))
        value, found = _first_votes(found, coarse=len(candidates) > 1)
        if value > best:
            best, chosen = value, found
    if best == 0:
        raise _nothing_left(given, "training rows", "label_share, epsilon_boost and train_share")
    return _first_votes(chosen, coarse=False)[1]


def _first_votes(rules: BBLRules, *, coarse: bool) -> tuple[float, BBLRules]:
    draw = rules.given.first_draw(rules.boost, rules.first)
    share = rules.first / rules.given.counts.n_rows
    value, noise, pair = _votes(rules, draw, share, coarse=coarse)
    return value, replace(rules, first_noise=noise, first_pair=pair)


def _with_queries(rules: BBLRules) -> BBLRules:
    """Choose the share of queries that are kept, and the noise of all later phases.

    A smaller share allows less noise, but makes phases longer. The noise per vote of the first two
    phases falls as the square root of the share divided by the noise grows: that is made largest.
    """
    given = rules.given
    candidates = SHARES if given.query_share is None else [given.query_share]
    best, chosen = 0.0, rules
    for share in candidates:
        value, found = _later_votes(replace(rules, query_share=share), coarse=len(candidates) > 1)
        if value > best:
            best, chosen = value, found
        elif best > 0:
            break  # it rises, then falls
    if best == 0:
        raise _nothing_left(given, "kept queries", "query_share, label_share and epsilon_boost")
    return _later_votes(chosen, coarse=False)[1]


def _later_votes(rules: BBLRules, *, coarse: bool) -> tuple[float, BBLRules]:
    draw = label_draw(rules.given.drawn_from, rules.boost, "T", rules.points)
    value, noise, pair = _votes(rules, draw, rules.query_share, coarse=coarse)
    return value, replace(rules, noise=noise, pair=pair)


def _votes(
    rules: BBLRules, draw: Draw, share: float, *, coarse: bool
) -> tuple[float, float, Approximate]:
    """Return what votes may cost in a phase.

    Parameters
    ----------
    rules : BBLRules
        All numbers that are known by now.
    draw : Draw
        The draw that labels the rows of the phase.
    share : float
        Share of the candidates for this phase that become its rows.
    coarse : bool
        Whether a rough figure will do.

    Returns
    -------
    float
        The share divided by the noise, which should be large.
    float
        The noise; infinite with BetweenThresholds.
    Approximate
        What BetweenThresholds may cost.
    """
    given = rules.given
    asked = (given.epsilon, given.delta, draw, rules.scored, share)
    if given.votes == "between":
        pair = between_pair(*asked)
        return share * pair.eps, math.inf, pair
    noise = least_noise(*asked, coarse=coarse)
    return share / noise, noise, NOTHING


def _nothing_left(given: BBLOptions, whose: str, smaller: str) -> InvalidParameter:
    return InvalidParameter(
        f"epsilon={given.epsilon!r}, delta={given.delta!r} leave nothing for the votes of the "
        f"{whose}; allow more, or smaller {smaller}."
    )


def _first_rows(given: BBLOptions, share: float) -> int:
    """Return how many training rows a share of them is, up to what a draw of labels can take."""
    rows = max(1, math.floor(Fraction(share) * given.counts.n_rows))
    return min(rows, given.counts.most) if given.agnostic else rows
