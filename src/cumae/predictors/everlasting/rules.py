"""The rules of an everlasting predictor, from its parameters and public sizes alone."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from cumae.claims import claim
from cumae.data import Columns, Declared
from cumae.errors import InvalidParameter, TooFewRows, warn
from cumae.learners import Learner
from cumae.mechanisms import GaussianNoise, Majority, counts_moved
from cumae.predictors.base import LEAST_ROWS_PER_CLASS, MODELS
from cumae.predictors.everlasting.margins import MarginTrainer
from cumae.predictors.everlasting.prior import TRUST_MOST, TRUST_SHARE
from cumae.predictors.everlasting.schedule import NO_END, PhaseSchedule
from cumae.predictors.noise import AIMED_NOISE, MUCH_NOISE
from cumae.predictors.stateful import check_classes, check_votes
from cumae.privacy import Approximate, Cost, Guarantee, parallel
from cumae.privacy.guarantee import ENDLESS
from cumae.privacy.plans import Plan
from cumae.remembering import remembered

GAME: tuple[str, ...] = (
    "an answer is seen by the one who asked, and by nobody else",
    *MODELS,
    "what a model answers for a row depends on that row and its place in a table, and on no other",
    "a model that fails on a row among made-up rows fails on it among any other rows",
    "ids of queries that different people ask are different",
)
IDS = ("ids are right, and who asks when is public",)
EITHER = (
    "one training row, or one query with its later label, is replaced by any other; the number of "
    "rows, the number and order of queries, their ids and the number of labels are public; a row "
    "of add_labelled counts as a training row; labels that come later are declared classes"
)
ANY = (
    "one training row, one query or one row of add_unlabelled is replaced by any other, and the "
    "numbers of rows and the number and order of queries are public; a row of add_labelled counts "
    "as a training row; labels that come later are declared classes"
)
USERS = (
    "all rows, labelled rows and queries of one user are replaced, and ids, the number of rows and "
    "labels and the number and order of queries are public; labels that come later are declared "
    "classes"
)
VOTING_SHARE = 0.25  # rows that vote at most where prior_share is "auto"
SMALLEST = 6  # rows of a shard, if it is not known that fewer will do
ONE_COLUMN_NOISE = 0.08  # of the votes, up to which the shards of such a class grow
LATE = 0.1  # share of a phase that the old models answer while new ones train, in a file
SMALLEST_OF_ONE_COLUMN = 3  # of a concept class: few rows lean to no side (representatives.py)


class PublicSizes(NamedTuple):
    """Facts that ``fit`` may know of its rows before it pays: their number, and declarations."""

    n_rows: int  # rows that are used: with user_ids one for each user
    n_classes: int
    has_prior: bool
    one_column: bool = False  # whether the model is a concept class of one column


@dataclass(frozen=True)
class EverlastingOptions:
    """Parameters of an everlasting predictor, as they were given, if they go together.

    Raises
    ------
    InvalidParameter
        If parameters contradict each other.
    """

    epsilon: float
    delta: float
    shard_size: int | str
    growth: float | str
    max_rows: int | None
    prior: Learner | bool | None
    prior_share: float | str
    balanced: bool
    user_ids: bool
    fresh: bool
    memoize: bool
    late: float | str
    background: bool | None
    client_cap: float | None
    columns: Declared
    classes: Any
    n_jobs: int | None
    progress: bool | None

    def __post_init__(self) -> None:
        check_votes(self.epsilon, self.delta)
        check_classes(self.classes)
        if self.fresh and not isinstance(self.growth, str) and not self.growth > 1:
            raise InvalidParameter(
                f"growth={self.growth!r} with fresh=True: labelling the fresh rows takes as many "
                "releases as there are rows, so that no answer would be left; give 'auto' or 2, "
                "for example."
            )
        named = self.user_ids or self.client_cap is not None
        if self.fresh and named:
            raise InvalidParameter(
                "fresh=True keeps no queries, so user_ids and client_cap have no meaning; leave "
                "them out."
            )
        if self.background and (isinstance(self.late, str) or not self.late):
            raise InvalidParameter(
                f"background=True with late={self.late!r}: the next query would wait for the "
                "training all the same; give late=0.1, say, or background=False."
            )


@claim("EVER")
@dataclass(frozen=True)
class EverlastingRules:
    """All public numbers and options of an everlasting predictor, fixed when it is fitted.

    Parameters
    ----------
    schedule : PhaseSchedule
        How large phases and shards are.
    first, prior_rows, trust_rows : int
        Rows that train the first phase, rows that train the prior, and rows that choose how much
        the votes count against it.
    balanced : bool
        Whether the classes of a shard weigh the same.
    user_ids, memoize : bool
        The options of these names.
    background : bool, or None
        Whether phases train in a thread of their own; None until it is known where the predictor
        lives, and in memory that is no.
    late : float, or "auto"
        Share of a phase that is answered while the next one trains; "auto" until it is known where
        the predictor lives, and in memory that is 0.
    client_cap : float, or None
        Share of a phase that one client may supply.
    n_jobs : int, or None
        Workers that train shards.
    progress : bool, or None
        Whether to show a bar.
    weighted : bool
        Whether estimators get weights, and not drawn labels.
    rho : float, or None
        What the first phase costs, and so the most that a later one may cost.
    """

    schedule: PhaseSchedule
    first: int
    prior_rows: int
    trust_rows: int
    balanced: bool
    user_ids: bool
    memoize: bool
    background: bool | None
    late: float | str
    client_cap: float | None
    n_jobs: int | None
    progress: bool | None
    weighted: bool = True
    rho: float | None = None

    @classmethod
    def of(cls, options: EverlastingOptions, sizes: PublicSizes) -> EverlastingRules:
        """Return the rules that follow from the parameters of a predictor and public sizes.

        Raises
        ------
        InvalidParameter
            If there are too few rows for these options.
        """
        prior_rows, trust_rows = _rows_of_prior(options, sizes) if sizes.has_prior else (0, 0)
        first = sizes.n_rows - prior_rows - trust_rows
        return cls(
            schedule=_schedule(options, first, sizes),
            first=first,
            prior_rows=prior_rows,
            trust_rows=trust_rows,
            balanced=bool(options.balanced),
            user_ids=bool(options.user_ids),
            memoize=bool(options.memoize),
            background=options.background,
            late=options.late,
            client_cap=options.client_cap,
            n_jobs=options.n_jobs,
            progress=options.progress,
        )

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return asdict(self)

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> EverlastingRules:
        """Rebuild what ``to_facts`` returned."""
        return cls(**{**facts, "schedule": PhaseSchedule(**facts["schedule"])})

    @property
    def epsilon(self) -> float:
        """Of the promise, for ever."""
        return self.schedule.epsilon

    @property
    def n_classes(self) -> int:
        """Number of declared classes."""
        return self.schedule.n_classes

    @property
    def fresh(self) -> bool:
        """True if rows of ``add_unlabelled`` take the place of queries."""
        return self.schedule.fresh

    @functools.cached_property  # each answer asks several times, and this never changes
    def least(self) -> int:
        """Fewest rows of a phase: less than half of the first one's would drown in noise."""
        return max(LEAST_ROWS_PER_CLASS * self.n_classes, self.first // 2)

    def releases(self, n_rows: int) -> int:
        """Return how many noisy votes a phase with so many rows releases."""
        return self.schedule.releases(n_rows)

    @functools.cached_property  # each answer asks
    def is_named(self) -> bool:
        """True if somebody must be named with each query."""
        return self.user_ids or self.client_cap is not None

    @property
    def late_share(self) -> float:
        """Share of a phase that is answered while the next one trains."""
        return 0.0 if isinstance(self.late, str) else self.late

    @claim("LATE")
    def late_releases(self, n_rows: int) -> int:
        """Return how many answers come after the training of the next phase has begun."""
        answers = self.schedule.answers(n_rows)
        return min(answers - 1, int(self.late_share * answers))

    @claim("LATE")
    def in_a_home(self) -> EverlastingRules:
        """Return the rules in a file or a database, where nobody should wait for a training.

        What the caller has left open is decided here. The promise names LATE in either case.
        """
        late = LATE if isinstance(self.late, str) else self.late
        background = True if self.background is None else self.background
        return replace(self, late=late, background=background)

    def cap(self, n_rows: int) -> int | None:
        """Return how many rows one client may supply during a phase with so many rows."""
        if self.client_cap is None:
            return None
        return max(1, int(self.client_cap * self.releases(n_rows)))

    def trainer(self, model: Any, columns: Columns | None, full_weight: int = 1) -> MarginTrainer:
        """Return what trains a shard.

        Parameters
        ----------
        model : classifier, Pipeline or ConceptClass
            What is trained.
        columns : Columns, or None
            What is known about the columns; None if nothing was declared.
        full_weight : int
            What a row weighs whose label is certain, which is the most.
        """
        return MarginTrainer(
            model,
            self.n_classes,
            columns,
            full_weight,
            balanced=self.balanced,
            weighted=self.weighted,
        )

    @claim("EVER")
    def majority(self, n_rows: int, more: int = 0) -> Majority:
        """Return the noise of a phase: all its releases, and some more, cost (epsilon, delta)."""
        releases = self.releases(n_rows) + more
        scale = _scale(self.epsilon, self.schedule.delta, releases, self.n_classes)
        if self.rho is not None:  # the same in all phases, and not above it by rounding
            moved = counts_moved(self.n_classes)
            scale = max(scale, math.sqrt(moved * releases / (2 * self.rho)))
            while rho_of(self._votes(scale, releases)) > self.rho:
                scale = math.nextafter(scale, math.inf)
        return self._votes(scale, releases)

    def _votes(self, scale: float, releases: int) -> Majority:
        noise = GaussianNoise(scale, moves=counts_moved(self.n_classes))
        return Majority(noise, self.n_classes, releases)

    def plan(self, cost: Cost, promised: Guarantee | None) -> Plan:
        """Return what is promised, given what the first phase costs and the prior promises."""
        claims = ["EVER", "SHARDS", "MULTI", "NOISE", "COMP"]
        named = self.is_named
        claims += ["USER"] * named + ["FRESH"] * self.fresh + ["MEMO"] * self.memoize
        may_be_late = isinstance(self.late, str) or self.late > 0
        claims += ["LATE"] * may_be_late + ["LABELLED"]
        assumptions, void = GAME + IDS * named, False
        if promised is not None:
            claims += ["PRIOR", "PAR", *promised.claims]
            assumptions += promised.assumptions
            void = promised.void
            cost = parallel(cost, Approximate(self.epsilon, self.schedule.delta))
        what = "one user" if self.user_ids else "one training row or one query"
        relation = USERS if self.user_ids else EITHER
        if self.fresh:
            what, relation = "one training row, one query or one row of add_unlabelled", ANY
        names = tuple(name for name in dict.fromkeys(claims) if name != "RAND")
        return Plan(cost, names, what, relation, assumptions, void=void, covers=ENDLESS)

    def warn_of_noise(self) -> None:
        """Tell the caller of ``fit`` if the noise of the first phase drowns its votes."""
        schedule, noise = self.schedule, self.schedule.noise(self.first)
        if noise <= MUCH_NOISE:
            return
        grows = schedule.growth is None
        follows, aim = "answers are hardly better than chance", AIMED_NOISE
        if grows:  # growing phases find their way from a noisy start
            follows, aim = "the first answers are hardly better than chance", MUCH_NOISE
        wanted, of_what = self.first * (noise / aim) ** 2, "users" if self.user_ids else "rows"
        if self.prior_rows:
            follows = "the votes add hardly anything to the prior"
            share = self.prior_rows / (self.prior_rows + self.trust_rows + self.first)
            wanted, of_what = rows_with_prior(wanted, share), f"{of_what} given to fit"
        large = schedule.growth is not None and schedule.growth > 2
        less = f", or a growth below {schedule.growth:g}" if large else ""
        warn(
            f"the noise is {noise:.0%} of the votes of shards of {schedule.shard_size(self.first)} "
            f"rows, so that {follows}; about {math.ceil(wanted):,} {of_what} would do, or a larger "
            f"epsilon{less}.",
            TooFewRows,
        )


def _rows_of_prior(options: EverlastingOptions, sizes: PublicSizes) -> tuple[int, int]:
    """Return how many rows the prior gets, and how many choose the trust."""
    count, share = sizes.n_rows, options.prior_share
    trust_rows = min(TRUST_MOST, int(TRUST_SHARE * count))
    least = LEAST_ROWS_PER_CLASS * sizes.n_classes
    if isinstance(share, str):
        enough = _schedule(options, count, sizes).rows_for(MUCH_NOISE, count)
        prior_rows = count - trust_rows - min(enough, int(VOTING_SHARE * count))
    else:
        prior_rows = int(share * count)
    voting = count - prior_rows - trust_rows
    if prior_rows < 1 or voting < least:
        raise InvalidParameter(
            f"prior_share={share!r} of {count:,} rows leaves {prior_rows:,} for the prior, "
            f"{trust_rows:,} to choose the trust and {voting:,} for the votes, which need {least} "
            "at least; give 0.5, say, or more rows."
        )
    return prior_rows, trust_rows


def rows_with_prior(voting: float, prior_share: float) -> float:
    """Return how many rows ``fit`` needs for so many that vote.

    Some of its rows train the prior, and some choose how much votes count against it.

    Parameters
    ----------
    voting : float
        Rows of the first phase.
    prior_share : float
        Share of the rows that train the prior.
    """
    rest = 1 - prior_share
    many = (voting + TRUST_MOST) / rest
    return many if TRUST_SHARE * many >= TRUST_MOST else voting / (rest - TRUST_SHARE)


def _schedule(options: EverlastingOptions, n_rows: int, sizes: PublicSizes) -> PhaseSchedule:
    """Return the schedule that the parameters ask for, with so many rows in the first phase."""
    least = LEAST_ROWS_PER_CLASS * sizes.n_classes
    if sizes.one_column:
        least = SMALLEST_OF_ONE_COLUMN
    if n_rows < least:
        raise InvalidParameter(
            f"n_samples={n_rows} is too few: a shard of {sizes.n_classes} classes needs {least} at "
            "least; give more rows."
        )
    fixed, growth = options.shard_size != "auto", options.growth
    smallest = least if sizes.one_column else max(least, SMALLEST)
    if fixed:
        smallest = int(options.shard_size)
        if not least <= smallest <= n_rows:
            raise InvalidParameter(
                f"shard_size={smallest!r} is not from {least}, which {sizes.n_classes} classes "
                f"need, to {n_rows}, the number of rows that vote; give 'auto' or 20, say."
            )
    return PhaseSchedule(
        epsilon=options.epsilon,
        delta=options.delta,
        n_classes=sizes.n_classes,
        growth=None if isinstance(growth, str) else growth,
        max_rows=NO_END if options.max_rows is None else max(n_rows, int(options.max_rows)),
        fresh=bool(options.fresh),
        smallest=min(smallest, n_rows),
        fixed=fixed,
        aim=ONE_COLUMN_NOISE if sizes.one_column else AIMED_NOISE,
    )


def rho_of(majority: Majority) -> float:
    """Return the zCDP form of what all releases cost."""
    rho, _ = majority.cost.zcdp or (math.inf, 0.0)
    return rho


@remembered(256)
def _scale(epsilon: float, delta: float, releases: int, n_classes: int) -> float:
    # Phases of the same size have the same noise, and finding it takes longer than answering.
    noise = Majority.calibrated(epsilon, delta, releases, n_classes).noise
    return noise.scale if isinstance(noise, GaussianNoise) else math.inf
