"""The 2015 health survey of the United States' Centers for Disease Control and Prevention."""

from __future__ import annotations

from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.utils import Bunch

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = "label"
TARGET_NAMES = ("no high blood pressure", "high blood pressure")

# name: (lowest answer, highest answer, meaning), from the survey's public code book
_COLUMNS = {
    "HighChol": (0, 1, "was diagnosed with high cholesterol"),
    "CholCheck": (0, 1, "had cholesterol checked in the last five years"),
    "BMI": (10, 100, "body mass index"),
    "Smoker": (0, 1, "has smoked 100 cigarettes or more in life"),
    "Stroke": (0, 1, "was diagnosed with a stroke"),
    "HeartDiseaseorAttack": (0, 1, "was diagnosed with coronary heart disease or a heart attack"),
    "PhysActivity": (0, 1, "was physically active outside work in the last 30 days"),
    "Fruits": (0, 1, "eats fruit every day"),
    "Veggies": (0, 1, "eats vegetables every day"),
    "HvyAlcoholConsump": (0, 1, "drinks heavily"),
    "AnyHealthcare": (0, 1, "has some health care coverage"),
    "NoDocbcCost": (0, 1, "did without a doctor because of the cost in the last year"),
    "GenHlth": (1, 5, "own health, from 1 excellent to 5 poor"),
    "MentHlth": (0, 30, "days of bad mental health in the last 30"),
    "PhysHlth": (0, 30, "days of bad physical health in the last 30"),
    "DiffWalk": (0, 1, "has difficulty walking or climbing stairs"),
    "Sex": (0, 1, "0 female, 1 male"),
    "Age": (1, 13, "age group, from 1 for 18 to 24, in steps of five years, to 13 for 80 or older"),
    "Education": (1, 6, "from 1 no school to 6 college graduate"),
    "Income": (1, 8, "household income, from 1 below $10,000 to 8 for $75,000 or more"),
    "Diabetes_binary": (0, 1, "was diagnosed with diabetes or prediabetes"),
}

#: Lowest and highest possible answer of each column, known without looking at any answer.
HEALTH_SURVEY_BOUNDS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {name: (low, high) for name, (low, high, _) in _COLUMNS.items()}
)

#: What each column means; where the answers are 0 and 1 without more words, 1 is yes.
HEALTH_SURVEY_MEANINGS: Mapping[str, str] = MappingProxyType(
    {name: meaning for name, (_, _, meaning) in _COLUMNS.items()}
)


def load_health_survey(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Load the bundled health survey, which asks who has high blood pressure.

    253,680 answered interviews with 21 columns of whole numbers, from the Behavioral Risk Factor
    Surveillance System of 2015, a telephone survey by the Centers for Disease Control and
    Prevention of the United States. The data are in the public domain; this selection of rows and
    columns comes from the PyPI package data-to-paper 1.1.22. The label tells whether the person was
    ever diagnosed with high blood pressure; 43 % were.

    The bounds of the columns are part of the answer because a private learner needs bounds that
    were declared without looking at the data; these come from the survey's code book.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Return a pandas DataFrame and Series; otherwise NumPy arrays, the data as floats.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        With the attributes ``data``, ``target``, ``frame`` (both together; None without
        ``as_frame``), ``feature_names``, ``target_names``, ``bounds``, ``meanings`` and ``DESCR``.

    Examples
    --------
    >>> from cumae.datasets import load_health_survey
    >>> survey = load_health_survey()
    >>> survey.data.shape
    (253680, 21)
    >>> survey.bounds["Age"], survey.meanings["BMI"]
    ((1, 13), 'body mass index')
    >>> X, y = load_health_survey(return_X_y=True, as_frame=False)
    >>> X.dtype, y.mean().round(2)
    (dtype('float64'), np.float64(0.43))
    """
    packed = resources.files("cumae.datasets") / "data" / "brfss_highbp.csv.gz"
    with packed.open("rb") as file:
        frame = pd.read_csv(file, compression="gzip")
    data: Any = frame.drop(columns=TARGET)
    target: Any = frame[TARGET]
    if not as_frame:
        data, target = data.to_numpy(dtype=float), target.to_numpy()
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame if as_frame else None,
        feature_names=list(HEALTH_SURVEY_BOUNDS),
        target_names=list(TARGET_NAMES),
        bounds=HEALTH_SURVEY_BOUNDS,
        meanings=HEALTH_SURVEY_MEANINGS,
        DESCR=load_health_survey.__doc__,
    )
