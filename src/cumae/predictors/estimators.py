"""Estimators as JSON, for the stored state of a predictor.

Known classes of scikit-learn and concept classes are written out with their parameters. Of any
other estimator a fingerprint is stored. Whoever opens the state gives that estimator again, and the
fingerprints are compared. Nothing is pickled, so that opening a state runs no code from it.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from cumae import concepts
from cumae.concepts import ConceptClass
from cumae.errors import InvalidParameter
from cumae.predictors.fingerprints import FORM, fingerprint, first_fingerprint, is_estimator
from cumae.storage import TAG, from_plain, to_plain

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
        written = json.dumps(_written(model), allow_nan=False)
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
    return _read(json.loads(plain["written"]))


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


def _written(value: Any) -> Any:
    """As ``to_plain``, for values that contain estimators; refuse what is not known."""
    if isinstance(value, ConceptClass):
        if getattr(concepts, type(value).__name__, None) is not type(value):
            raise InvalidParameter(f"a {type(value).__name__} is no class of cumae.concepts.")
        return to_plain(value)
    if is_estimator(value):
        module = next((name for name in KNOWN if _class(name, type(value)) is not None), None)
        if module is None:
            raise InvalidParameter(f"a {type(value).__name__} is no estimator that can be stored.")
        given = value.get_params(deep=False)
        parameters = {name: _written(part) for name, part in given.items()}
        return {TAG: "estimator", "module": module, "class": type(value).__name__} | {
            "parameters": parameters
        }
    if isinstance(value, list):
        return [_written(part) for part in value]
    if isinstance(value, tuple):
        return {TAG: "parts", "items": [_written(part) for part in value]}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {TAG: "type", "name": value.__name__}
    return to_plain(value)


def _class(module: str, kind: type) -> type | None:
    """Return a class if a module of the list has it under its own name."""
    found = None
    if kind.__name__ in KNOWN.get(module, ()):
        found = getattr(importlib.import_module(module), kind.__name__, None)
    return found if found is kind else None


def _read(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_read(part) for part in plain]
    tag = plain.get(TAG) if isinstance(plain, dict) else None
    if tag == "estimator":
        module, name = plain["module"], plain["class"]
        if name not in KNOWN.get(module, ()):
            raise InvalidParameter("a stored estimator is of a class that is not on the list.")
        parameters = {name: _read(part) for name, part in plain["parameters"].items()}
        return getattr(importlib.import_module(module), name)(**parameters)
    if tag == "parts":
        return tuple(_read(part) for part in plain["items"])
    if tag == "type":
        return np.dtype(plain["name"]).type
    return from_plain(plain)
