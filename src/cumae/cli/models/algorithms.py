"""The algorithms of the papers by name, for ``cumae fit --algorithm``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from cumae.errors import InvalidParameter

if TYPE_CHECKING:
    from cumae.cli.models.private import PrivateTable
    from cumae.planning.routes import Situation


class AlgorithmName(StrEnum):
    """Algorithms that can be asked for by name."""

    LEARNER = "learner"
    GENERIC = "generic"
    LABEL_BOOST = "label-boost"
    ITER_LABEL_BOOST = "iter-label-boost"
    SEMI_PRIVATE = "semi-private"
    REDUCTION = "reduction"
    ACCURACY_BOOST = "accuracy-boost"
    HYPOTHESIS = "hypothesis"
    QUERY = "query"
    AGNOSTIC = "agnostic"
    UNIVERSAL = "universal"
    BBL = "bbl"


class ConceptName(StrEnum):
    """Classes of rules that can be asked for by name."""

    POINTS = "points"
    THRESHOLDS = "thresholds"
    INTERVALS = "intervals"
    BOXES = "boxes"
    HALFSPACES = "halfspaces"
    STUMPS = "stumps"
    TREES = "trees"
    CONJUNCTIONS = "conjunctions"
    PARITIES = "parities"
    RANDOM_SETS = "random-sets"


CONCEPTS = {
    ConceptName.POINTS: "Points",
    ConceptName.THRESHOLDS: "Thresholds",
    ConceptName.INTERVALS: "Intervals",
    ConceptName.BOXES: "Rectangles",
    ConceptName.HALFSPACES: "Halfspaces",
    ConceptName.STUMPS: "Stumps",
    ConceptName.TREES: "Trees",
    ConceptName.CONJUNCTIONS: "Conjunctions",
    ConceptName.PARITIES: "Parities",
    ConceptName.RANDOM_SETS: "RandomSets",
}
SET_ERROR = 0.1  # of --concept random-sets, which are drawn by a new key
TREE_DEPTH = 2  # of --concept trees, as of learners that are given no concept class


@dataclass(frozen=True)
class Algorithm:
    """One algorithm: its class, and the rows that it takes.

    Parameters
    ----------
    kind : str
        Name of the class in ``cumae``.
    oracle : bool
        Whether it answers queries, and publishes no model.
    unlabelled : bool
        Whether it takes rows without labels.
    public : bool
        Whether it needs public rows.
    """

    kind: str
    oracle: bool = False
    unlabelled: bool = False
    public: bool = False


ALGORITHMS = {
    AlgorithmName.LEARNER: Algorithm("PrivateLearner"),
    AlgorithmName.GENERIC: Algorithm("GenericLearner", unlabelled=True),
    AlgorithmName.LABEL_BOOST: Algorithm("LabelBoost", unlabelled=True),
    AlgorithmName.ITER_LABEL_BOOST: Algorithm("IterLabelBoost", unlabelled=True),
    AlgorithmName.SEMI_PRIVATE: Algorithm("SemiPrivateLearner", public=True),
    AlgorithmName.REDUCTION: Algorithm("PublicDataReduction", public=True),
    AlgorithmName.ACCURACY_BOOST: Algorithm("AccuracyBoost"),
    AlgorithmName.HYPOTHESIS: Algorithm("HypothesisLearner", public=True),
    AlgorithmName.QUERY: Algorithm("QueryRelease", oracle=True),
    AlgorithmName.AGNOSTIC: Algorithm("AgnosticQueryRelease", oracle=True),
    AlgorithmName.UNIVERSAL: Algorithm("UniversalQueryRelease", oracle=True),
    AlgorithmName.BBL: Algorithm("GenericBBL", oracle=True),
}
# The base of algorithms that run another one, and its share of epsilon: label boosting costs more
# than its base.
BASES = {
    AlgorithmName.LABEL_BOOST: ("PrivateLearner", 0.4),
    AlgorithmName.ITER_LABEL_BOOST: ("PrivateLearner", 0.3),
    AlgorithmName.REDUCTION: ("SemiPrivateLearner", 1.0),
    AlgorithmName.ACCURACY_BOOST: ("PrivateLearner", 1.0),
    AlgorithmName.HYPOTHESIS: ("PrivateLearner", 1.0),
}
REDUCED_PUBLIC_ROWS, REDUCED_ONE_IN = 50, 4  # the paper's own sizes need millions of rows
ACCURACY_BLOCKS = 5


@dataclass(frozen=True)
class NamedAlgorithm:
    """An algorithm that was asked for by name, with its rules and parameters.

    Parameters
    ----------
    name : AlgorithmName
        The algorithm.
    concept : ConceptName, or None
        The class of rules; trees of depth 2 if none is given.
    settings : dict
        Other parameters by their names.
    """

    name: AlgorithmName
    concept: ConceptName | None
    settings: dict[str, Any]

    @classmethod
    def read(
        cls,
        name: AlgorithmName | None,
        concept: ConceptName | None,
        settings: list[str],
        unlabelled: str | None,
        public: str | None,
    ) -> NamedAlgorithm | None:
        """Read options, and refuse those that do not fit together; None if no name is given.

        Parameters
        ----------
        name, concept : AlgorithmName and ConceptName, or None
            As above.
        settings : list of str
            Parameters of the algorithm, as ``name=value``.
        unlabelled, public : str, or None
            Files of rows without labels, and of public rows.
        """
        if name is None:
            given = {"--concept": concept, "--set": settings or None, "--unlabelled": unlabelled}
            for option, value in given.items():
                if value is not None:
                    raise typer.BadParameter("give it with --algorithm.", param_hint=option)
            return None
        algorithm = ALGORITHMS[name]
        if unlabelled is not None and not algorithm.unlabelled:
            takers = [one.value for one, found in ALGORITHMS.items() if found.unlabelled]
            raise typer.BadParameter(
                f"{name.value} takes no rows without labels; these do: {', '.join(takers)}.",
                param_hint="--unlabelled",
            )
        if algorithm.public and public is None:
            raise typer.BadParameter(f"{name.value} needs public rows.", param_hint="--public")
        return cls(name, concept, parsed(settings))

    @property
    def oracle(self) -> bool:
        """True if it answers queries, and publishes no model."""
        return ALGORITHMS[self.name].oracle

    def build(self, table: PrivateTable, situation: Situation) -> Any:
        """Return the estimator, unfitted.

        Parameters
        ----------
        table : PrivateTable
            What was declared about the rows, and public rows.
        situation : Situation
            Privacy parameters, and how many queries there will be.
        """
        import cumae  # noqa: PLC0415 - what is used of it takes seconds to load

        name, rules, epsilon = self.name, _concept(self.concept), situation.epsilon
        more: dict[str, Any] = {"epsilon": epsilon, "classes": table.classes}
        if name in BASES:
            kind, share = BASES[name]
            # A base gets 0 and 1 for the classes; what wraps it knows their names.
            base = getattr(cumae, kind)(rules, epsilon=share * epsilon, columns=table.declared)
            own = {"predictor": base} if name is AlgorithmName.HYPOTHESIS else {"base": base}
            more |= own | _sizes(name, table)
        else:
            more["columns"] = table.declared
        if name not in BASES or name in (AlgorithmName.LABEL_BOOST, AlgorithmName.ITER_LABEL_BOOST):
            more["concept_class"] = rules
        if situation.n_queries is not None:
            more["max_queries"] = situation.n_queries
        found = getattr(cumae, ALGORITHMS[name].kind)
        known = list(inspect.signature(found).parameters)
        if "delta" in known:  # others have pure privacy, which is less than any delta
            more["delta"] = situation.delta
        return found(**(more | _known(name, self.settings, known)))


def parsed(settings: list[str]) -> dict[str, Any]:
    """Return parameters that were given as ``name=value``: JSON, or text as it stands.

    Examples
    --------
    >>> from cumae.cli.models.algorithms import parsed
    >>> parsed(["alpha=0.05", "constants=paper", "resample=true"])
    {'alpha': 0.05, 'constants': 'paper', 'resample': True}
    """
    found = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(
                f"{setting!r} has no name and value; give alpha=0.05, say.", param_hint="--set"
            )
        try:
            found[name.strip()] = json.loads(value)
        except json.JSONDecodeError:
            found[name.strip()] = value
    return found


def has_public(estimator: Any) -> bool:
    """Tell whether an algorithm has its public rows among its parameters."""
    return bool({"dummies", "domain"} & set(estimator.get_params(deep=False)))


def _concept(concept: ConceptName | None) -> Any:
    """Return the concept class of a name."""
    from cumae import concepts  # noqa: PLC0415

    kind = getattr(concepts, CONCEPTS[concept or ConceptName.TREES])
    if concept is ConceptName.RANDOM_SETS:
        return kind.draw(SET_ERROR)
    return kind(TREE_DEPTH) if concept in (None, ConceptName.TREES) else kind()


def _sizes(name: AlgorithmName, table: PrivateTable) -> dict[str, Any]:
    """Return public rows and numbers that algorithms want which run another one."""
    if name is AlgorithmName.ACCURACY_BOOST:
        return {"blocks": ACCURACY_BLOCKS}
    if table.public is None:
        return {}
    points = table.frame(table.public)
    if name is AlgorithmName.HYPOTHESIS:
        return {"domain": points.drop_duplicates(ignore_index=True)}
    sizes = {"n_public": REDUCED_PUBLIC_ROWS, "one_in": REDUCED_ONE_IN}
    return {"dummies": points, "n_private": REDUCED_ONE_IN * table.rows.n_rows, **sizes}


def _known(name: AlgorithmName, given: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """Return parameters that were given; refuse one that the algorithm does not have."""
    fixed = {"epsilon", "delta", "classes", "columns", "base", "predictor", "random_state"}
    fixed |= {"concept_class", "dummies", "domain", "budget"}
    for one in given:
        if one not in known or one in fixed:
            listed = ", ".join(option for option in known if option not in fixed)
            raise InvalidParameter(
                f"--set {one}=...: {name.value} has no such parameter; it has {listed}."
            )
    return given
