"""What an everlasting predictor is going to do, from its parameters and public counts alone."""

from __future__ import annotations

import math
import warnings
from typing import Any

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data.columns import Declared
from cumae.errors import AnswersDrift, InvalidParameter, TooFewRows
from cumae.learners.base import Learner
from cumae.mechanisms import counts_moved
from cumae.parameters import check_count, check_flag, check_share
from cumae.predictors.base import LEAST_ROWS_PER_CLASS, Predictor, Training
from cumae.predictors.everlasting.margins import MarginTrainer
from cumae.predictors.everlasting.phases import Settings
from cumae.predictors.everlasting.prior import TRIAL_MOST, TRIAL_SHARE, Prior
from cumae.predictors.noise import AIMED_NOISE, MUCH_NOISE
from cumae.privacy import Approximate, Budget, Cost, calibrate_gaussian, parallel
from cumae.privacy.plans import Plan
from cumae.privacy.validation import check_nonnegative
from cumae.randomness import Source

GAME: tuple[str, ...] = (
    "an answer is seen by the one who asked, and by nobody else",
    "a shard's fit depends on its own rows and its seed only, as those of scikit-learn do",
)
EITHER = (
    "one training row or one query is replaced by any other, and the number of rows and the number "
    "and order of queries are public"
)
ANY = (
    "one training row, one query or one row of add_unlabelled is replaced by any other, and the "
    "numbers of rows and the number and order of queries are public"
)
USERS = (
    "all rows and queries of one user are replaced, and ids, the number of rows and the number and "
    "order of queries are public"
)
SMALLEST = 6  # rows of a shard


@claim("EVER")
class EverlastingPlan(Predictor):
    """Parameters of an everlasting predictor, and what follows from them before a row is read."""

    counts_unusable = True

    def __init__(
        self,
        estimator: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        concept_class: ConceptClass | None = None,
        shard_size: int | str = "auto",
        growth: float = 1.0,
        prior: Learner | bool | None = None,
        prior_share: float = 0.5,
        balanced: bool = True,
        user_ids: bool = False,
        fresh: bool = False,
        memoize: bool = False,
        late: float = 0.0,
        background: bool = False,
        client_cap: float | None = None,
        columns: Declared = None,
        classes: Any = (0, 1),
        n_jobs: int | None = None,
        progress: bool | None = None,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.concept_class = concept_class
        self.shard_size = shard_size
        self.growth = growth
        self.prior = prior
        self.prior_share = prior_share
        self.balanced = balanced
        self.user_ids = user_ids
        self.fresh = fresh
        self.memoize = memoize
        self.late = late
        self.background = background
        self.client_cap = client_cap
        self.columns = columns
        self.classes = classes
        self.n_jobs = n_jobs
        self.progress = progress
        self.budget = budget
        self.random_state = random_state

    def _check_options(self) -> None:
        for name in ("balanced", "user_ids", "fresh", "memoize", "background"):
            check_flag(getattr(self, name), name)
        if self.epsilon < math.inf and (self.epsilon == 0 or self.delta == 0):
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}, delta={self.delta!r}: votes need both above 0; give "
                "delta=1e-6, say. For delta=0 there is QueryRelease with mechanism='laplace'."
            )
        if -1 in list(self.classes):
            raise InvalidParameter("classes have -1, the answer to unusable queries; rename it.")
        if not 1 <= check_nonnegative(self.growth, "growth") < math.inf:
            raise InvalidParameter(
                f"growth={self.growth!r} is below 1 or not finite; give 1 or more."
            )
        if self.fresh and not self.growth > 1:
            raise InvalidParameter(
                f"growth={self.growth!r} with fresh=True: labelling the fresh rows takes as many "
                "releases as there are rows, so that no answer would be left; give 2, for example."
            )
        kept = self.user_ids or self.client_cap is not None or self.late or self.background
        if self.fresh and kept:
            raise InvalidParameter(
                "fresh=True keeps no queries, so user_ids, client_cap, late and background have no "
                "meaning; leave them out."
            )
        if not 0 <= check_nonnegative(self.late, "late") <= 0.5:
            raise InvalidParameter(f"late={self.late!r} is not from 0 to 0.5; give 0.1, say.")
        if self.background and not self.late:
            raise InvalidParameter(
                f"background=True with late={self.late!r}: the next query would wait for the "
                "training all the same; give late=0.1, say, or background=False."
            )
        if self.client_cap is not None:
            check_share(self.client_cap, "client_cap")

    def _blocks(self, count: int, n_classes: int) -> tuple[int, int]:
        """Return how many rows the prior gets, and how many choose the trust; counts alone."""
        block = int(check_share(self.prior_share, "prior_share") * count)
        tried = min(TRIAL_MOST, int(TRIAL_SHARE * count))
        least = LEAST_ROWS_PER_CLASS * n_classes
        if block < 1 or count - block - tried < least:
            raise InvalidParameter(
                f"prior_share={self.prior_share!r} of {count:,} rows leaves {block:,} for the "
                f"prior, {tried:,} to choose the trust and {count - block - tried:,} for the "
                f"votes, which need {least} at least; give 0.5, say, or more rows."
            )
        return block, tried

    def _settings(self, training: Training, n_rows: int) -> Settings:
        trainer = MarginTrainer(
            training.model, training.n_classes, training.columns, balanced=bool(self.balanced)
        )
        least = LEAST_ROWS_PER_CLASS * training.n_classes
        if n_rows < least:
            raise InvalidParameter(
                f"n_samples={n_rows} is too few: a shard of {training.n_classes} classes needs "
                f"{least} at least; give more rows."
            )
        if self.shard_size == "auto":
            size = max(SMALLEST, least, self._rule(n_rows, training.n_classes))
        else:
            size = check_count(self.shard_size, "shard_size", least=1)
            if not least <= size <= n_rows:
                raise InvalidParameter(
                    f"shard_size={size!r} is not from {least}, which {training.n_classes} classes "
                    f"need, to {n_rows}, the number of rows that vote; give 'auto' or 20, say."
                )
        return Settings(
            trainer,
            training.stand_in,
            self.epsilon,
            self.delta,
            size,
            self.growth,
            self.n_jobs,
            self.progress,
        )

    def _rule(self, n_rows: int, n_classes: int) -> int:
        """Return the rows of a shard with which the noise is AIMED_NOISE of the votes."""
        if self.epsilon == math.inf:
            return 0
        releases = math.ceil(self.growth * n_rows) * counts_moved(n_classes)
        scale = calibrate_gaussian(self.epsilon, self.delta, releases, tolerance=1e-3)
        return int(AIMED_NOISE * n_rows / scale)

    def _plan(self, cost: Cost, prior: Prior | None, block: int) -> Plan:
        claims = ["EVER", "SHARDS", "MULTI", "NOISE", "COMP"]
        claims += ["USER"] * self.user_ids + ["FRESH"] * self.fresh + ["MEMO"] * self.memoize
        claims += ["LATE"] * (self.late > 0)
        assumptions, void = GAME, False
        if prior is not None:
            promised = prior.promise(block)
            claims += ["PRIOR", "PAR", *promised.claims]
            assumptions += promised.assumptions
            void = promised.void
            cost = parallel(cost, Approximate(self.epsilon, self.delta))
        what = "one user" if self.user_ids else "one training row or one query"
        relation = USERS if self.user_ids else EITHER
        if self.fresh:
            what, relation = "one training row, one query or one row of add_unlabelled", ANY
        names = tuple(name for name in dict.fromkeys(claims) if name != "RAND")
        return Plan(cost, names, what, relation, assumptions, void=void)

    def _warn_of_drift(self, training: Training, prior: Prior | None) -> None:
        if isinstance(training.model, ConceptClass) or prior is not None or self.prior is False:
            return
        few = training.n_classes == 2
        why = "without declared columns" if few else f"for {training.n_classes} classes"
        how = "declare columns= so that a prior is trained, or give" if few else "give"
        warnings.warn(
            f"no prior is trained {why}, and answers of {type(training.model).__name__} drift from "
            f"phase to phase without one, perhaps until all are the same; {how} prior=False to "
            "accept it.",
            AnswersDrift,
            stacklevel=4,
        )

    def _warn_of_noise(self, settings: Settings, n_rows: int, prior: Prior | None) -> None:
        if self.epsilon == math.inf:
            return
        releases = settings.releases(n_rows)
        scale = calibrate_gaussian(self.epsilon, self.delta, releases, tolerance=1e-3)
        noise = scale / settings.shards(n_rows)
        if noise > MUCH_NOISE:
            wanted = n_rows * (noise / AIMED_NOISE) ** 2
            follows = "answers are hardly better than chance"
            if prior is not None:
                follows = "the votes add hardly anything to the prior"
                wanted = self._all_rows(wanted)
            of_what = "users" if self.user_ids else "rows"
            of_what += "" if prior is None else " given to fit"
            less = f", or a growth below {self.growth:g}" if self.growth > 2 else ""
            warnings.warn(
                f"the noise is {noise:.2f} of the votes of shards of {settings.size} rows, so that "
                f"{follows}; about {math.ceil(wanted):,} {of_what} would do, or a larger "
                f"epsilon{less}.",
                TooFewRows,
                stacklevel=4,
            )

    def _all_rows(self, voting: float) -> float:
        """Return how many rows fit needs for so many that vote: prior and trial have their own."""
        rest = 1 - self.prior_share
        many = (voting + TRIAL_MOST) / rest
        return many if TRIAL_SHARE * many >= TRIAL_MOST else voting / (rest - TRIAL_SHARE)
