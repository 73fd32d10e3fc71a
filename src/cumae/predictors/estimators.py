"""Estimators as JSON, for the stored state of a predictor.

Known classes of scikit-learn and concept classes are written out with their parameters. Of any
other estimator a fingerprint is stored. Whoever opens the state gives that estimator again, and the
fingerprints are compared. Nothing is pickled, so that opening a state runs no code from it.
"""

from __future__ import annotations

import json
from typing import Any

from sklearn.base import BaseEstimator

from cumae.codec import Part, PlainReader, PlainWriter, add_form, class_named, register_later
from cumae.errors import InvalidParameter
from cumae.predictors.fingerprints import FORM, fingerprint, first_fingerprint

ESTIMATOR_TAG = "estimator"
# The classes that are written out, by module.
KNOWN = {
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.discriminant_analysis": (
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ),
    "sklearn.dummy": ("DummyClassifier",),
    "sklearn.ensemble": (
        "AdaBoostClassifier",
        "BaggingClassifier",
        "ExtraTreesClassifier",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "RandomForestClassifier",
        "StackingClassifier",
        "VotingClassifier",
    ),
    "sklearn.feature_selection": ("VarianceThreshold",),
    "sklearn.impute": ("KNNImputer", "MissingIndicator", "SimpleImputer"),
    "sklearn.kernel_approximation": ("Nystroem", "PolynomialCountSketch", "RBFSampler"),
    "sklearn.linear_model": (
        "LogisticRegression",
        "LogisticRegressionCV",
        "Perceptron",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    ),
    "sklearn.multiclass": ("OneVsOneClassifier", "OneVsRestClassifier"),
    "sklearn.naive_bayes": (
        "BernoulliNB",
        "CategoricalNB",
        "ComplementNB",
        "GaussianNB",
        "MultinomialNB",
    ),
    "sklearn.neighbors": ("KNeighborsClassifier", "NearestCentroid", "RadiusNeighborsClassifier"),
    "sklearn.neural_network": ("MLPClassifier",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "Binarizer",
        "KBinsDiscretizer",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "SplineTransformer",
        "StandardScaler",
    ),
    "sklearn.svm": ("SVC", "LinearSVC", "NuSVC"),
    "sklearn.tree": ("DecisionTreeClassifier", "ExtraTreeClassifier"),
}


def estimator_to_plain(model: Any) -> dict[str, str | None]:
    """Return texts that stand for an unfitted estimator or a concept class.

    Parameters
    ----------
    model : classifier, Pipeline or ConceptClass
        What a predictor trains on its shards.

    Returns
    -------
    dict from str to str or None
        A fingerprint and, unless a part of the estimator is unknown, a JSON text from which the
        estimator can be made again.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from cumae.predictors.estimators import estimator_from_plain, estimator_to_plain
    >>> estimator_from_plain(estimator_to_plain(DecisionTreeClassifier(max_depth=3)))
    DecisionTreeClassifier(max_depth=3)
    """
    try:
        written = json.dumps(PlainWriter({ESTIMATOR_TAG}).plain(model), allow_nan=False)
    except InvalidParameter:
        written = None
    return {"fingerprint": fingerprint(model), "written": written}


def estimator_from_plain(plain: dict[str, Any], given: Any = None) -> Any:
    """Return the estimator that ``estimator_to_plain`` was given.

    Parameters
    ----------
    plain : dict from str to str or None
        What it returned.
    given : classifier, Pipeline or ConceptClass, or None
        The same estimator. It is needed if the stored one could not be written out.

    Raises
    ------
    InvalidParameter
        If the estimator is needed and not given, or if another one is given.
    """
    if given is not None:
        stored = plain["fingerprint"]
        same = fingerprint(given) if stored.startswith(FORM) else first_fingerprint(given)
        if same != stored:
            raise InvalidParameter(
                "estimator is not the one that was stored: its class or one of its parameters is "
                "another; give an equal one."
            )
        return given
    if plain["written"] is None:
        raise InvalidParameter(
            "the stored predictor has an estimator that could not be written out; give an equal "
            "one as estimator=."
        )
    return PlainReader({ESTIMATOR_TAG}).value(json.loads(plain["written"]))


def given_as(name: str, given: Any) -> Any:
    """Return what was given to ``restore`` for one parameter.

    Parameters
    ----------
    name : str
        ``"estimator"`` for the model, ``"student"`` for a student.
    given : classifier, Pipeline or ConceptClass, a dict of those by name, or None
        The argument of ``restore``.
    """
    if isinstance(given, dict):
        return given.get(name)
    return given if name == "estimator" else None


def _written(model: Any, name: str, part: Part) -> dict[str, Any]:
    """Write an estimator by its class and its parameters, as they are before fit."""
    module, _, own = name.rpartition(".")
    given = model.get_params(deep=False)
    return {
        "module": module,
        "class": own,
        "parameters": {parameter: part(value) for parameter, value in given.items()},
    }


def _read(plain: dict[str, Any], part: Part) -> Any:
    kind = class_named(ESTIMATOR_TAG, f"{plain['module']}.{plain['class']}")
    if kind is None:
        raise InvalidParameter("a stored estimator is of a class that is not on the list.")
    return kind(**{parameter: part(value) for parameter, value in plain["parameters"].items()})


# On request: what a fitted one has learnt is not written.
add_form(ESTIMATOR_TAG, BaseEstimator, _written, _read, asked=True)
register_later(
    ESTIMATOR_TAG, [f"{module}.{name}" for module, names in KNOWN.items() for name in names]
)
