"""What GenericBBL is going to do, from its parameters and public counts alone."""

from __future__ import annotations

import math
import warnings
from typing import Any

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.relabelling import most_points, relabelled
from cumae.data import Declared
from cumae.errors import InvalidParameter, TooFewRows, shown
from cumae.parameters import check_choice, check_count, check_share
from cumae.predictors.base import Predictor, Training
from cumae.predictors.bbl.phases import LEAST_ROWS
from cumae.predictors.bbl.rules import GOOD_NOISE, Sizes, Wish
from cumae.predictors.relabelling import encoded_width, need_numbers
from cumae.privacy import Approximate, Budget
from cumae.privacy.plans import Plan
from cumae.privacy.validation import check_epsilon, check_nonnegative
from cumae.randomness import Source

RELATION = (
    "is replaced by any other, and the number of rows and the number and order of queries are "
    "public"
)
SEEN = "an answer, or the refusal of a batch, is seen by the one who asked, and by nobody else"
STATE = (
    "queries need no protection: BetweenThresholds keeps a state, so that what one asked shows in "
    "when it halts for the others"
)
MUCH_NOISE = 0.3
MOST_EPSILON = 500.0


@claim("BBL")
class BBLPlan(Predictor):
    """Parameters of GenericBBL, and what follows from them before a row is read."""

    estimator = None

    counts_unusable = True

    def __init__(
        self,
        concept_class: ConceptClass,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        alpha: float = 0.1,
        beta: float = 0.1,
        *,
        constants: str = "practical",
        votes: str = "stateless",
        agnostic: bool = False,
        fresh: bool = False,
        shard_size: int | str = "auto",
        phase_length: int | str = "auto",
        growth: float = 2.0,
        max_rows: int = 1_000_000,
        train_share: float | str = "auto",
        query_share: float | str = "auto",
        label_share: float | str = "auto",
        epsilon_boost: float | str = "auto",
        between_share: float | str = "auto",
        columns: Declared = None,
        classes: Any = (0, 1),
        n_jobs: int | None = None,
        progress: bool | None = None,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.beta = beta
        self.constants = constants
        self.votes = votes
        self.agnostic = agnostic
        self.fresh = fresh
        self.shard_size = shard_size
        self.phase_length = phase_length
        self.growth = growth
        self.max_rows = max_rows
        self.train_share = train_share
        self.query_share = query_share
        self.label_share = label_share
        self.epsilon_boost = epsilon_boost
        self.between_share = between_share
        self.columns = columns
        self.classes = classes
        self.n_jobs = n_jobs
        self.progress = progress
        self.budget = budget
        self.random_state = random_state

    def _model(self) -> ConceptClass:
        concept: Any = self.concept_class
        if not isinstance(concept, ConceptClass):
            kind = concept.__name__ if isinstance(concept, type) else shown(concept)
            raise InvalidParameter(
                f"concept_class={kind} is no concept class; give one of cumae.concepts, such as "
                "Thresholds(). For any estimator there is EverlastingPredictor."
            )
        return concept

    def _wish(self, training: Training) -> Wish:
        concept = self._model()
        relabelled(Approximate(0.0, 0.0), 1.0, "S", concept, 1)  # refuses one without a proven k
        need_numbers(training.rows, training.columns)
        check_choice(self.constants, ("practical", "paper"), "constants")
        check_choice(self.votes, ("stateless", "between"), "votes")
        if self.epsilon == 0 or (self.delta == 0 and self.epsilon < math.inf):
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}, delta={self.delta!r}: votes need both above 0; give "
                "delta=1e-6, say. For delta=0 there is QueryRelease with mechanism='laplace'."
            )
        if MOST_EPSILON < self.epsilon < math.inf:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r} is beyond {MOST_EPSILON:g}, where floats cannot tell "
                "what relabelling costs; give less, or infinity for no privacy at all."
            )
        if not 1 <= check_nonnegative(self.growth, "growth") <= 1000:
            raise InvalidParameter(f"growth={self.growth!r} is not from 1 to 1000.")
        boost = self.epsilon_boost if self.epsilon_boost == "auto" else self._boost()
        width = encoded_width(training)
        return Wish(
            concept,
            training.rows.n_rows,
            max(1, concept.vc_dimension(width)),
            most_points(concept, width),
            float(self.epsilon),
            float(self.delta),
            check_share(self.alpha, "alpha"),
            check_share(self.beta, "beta"),
            self.votes,
            bool(self.agnostic),
            float(self.growth),
            check_count(self.max_rows, "max_rows", least=LEAST_ROWS),
            _given(self.shard_size, "shard_size"),
            _given(self.phase_length, "phase_length"),
            _given_share(self.train_share, "train_share"),
            _given_share(self.query_share, "query_share"),
            _given_share(self.label_share, "label_share"),
            None if boost == "auto" else float(boost),
            _given_share(self.between_share, "between_share"),
        )

    def _boost(self) -> float:
        value = check_epsilon(self.epsilon_boost, "epsilon_boost")
        if value == 0 or (value == math.inf and self.epsilon < math.inf):
            raise InvalidParameter(
                f"epsilon_boost={self.epsilon_boost!r}: 0 looks at no label, and an infinite one "
                "costs more than any epsilon; give 1.0, for example."
            )
        return value

    def _plan(self) -> Plan:
        claims = ["BBL", "LB", "SUB", "CHOOSE", "SHARDS", "ZCDP", "COMP"]
        claims += ["BT"] if self.votes == "between" else ["MULTI", "NOISE"]
        what = ["one training row"]
        what += ["one query"] * (self.votes == "stateless") + ["one unlabelled row"] * self.fresh
        protected = " or ".join([", ".join(what[:-1]), what[-1]] if len(what) > 1 else what)
        assumptions = (STATE,) if self.votes == "between" else (SEEN,)
        # Noise is calibrated to all of it; the rules have checked that it is not more.
        cost = Approximate(self.epsilon, 0.0 if self.epsilon == math.inf else self.delta)
        return Plan(cost, tuple(claims), protected, f"{protected} {RELATION}", assumptions)

    def _warn_of_noise(self, noise: float, worst: Sizes) -> None:
        if noise <= MUCH_NOISE:
            return
        if self.votes == "between":
            told = (
                f"thresholds lie {noise:.2f} of the {worst.shards:,} votes of phase {worst.number} "
                "from their middle; what is not clearer counts as split, and it halts for ever "
                f"after {worst.between:,} of those. Give a smaller shard_size or between_share, a "
                "larger epsilon, or more rows with the same phase_length."
            )
        else:
            wanted = math.ceil(worst.rows * (noise / GOOD_NOISE) ** 2)
            told = (
                f"the noise is {noise:.2f} of the {worst.shards} votes of phase {worst.number}, so "
                f"that answers are hardly better than chance; with about {wanted:,} rows in a "
                "phase they would be good. Give more rows, or a larger epsilon, growth or "
                "max_rows."
            )
        warnings.warn(told, TooFewRows, stacklevel=4)


def _given_share(value: object, name: str) -> float | None:
    if value == "auto":
        return None
    number = check_nonnegative(value, name)
    if not 0 < number <= 1:
        raise InvalidParameter(f"{name}={value!r} is not a share above 0 and up to 1, or 'auto'.")
    return number


def _given(value: object, name: str) -> int | None:
    return None if value == "auto" else check_count(value, name, least=1)
