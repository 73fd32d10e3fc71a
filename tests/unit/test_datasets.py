"""The bundled survey loads in scikit-learn's manner and is what its documentation says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cumae.datasets import HEALTH_SURVEY_BOUNDS, HEALTH_SURVEY_MEANINGS, load_health_survey


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    loaded = load_health_survey().frame
    assert isinstance(loaded, pd.DataFrame)
    return loaded


def test_bunch_has_what_scikit_learn_users_expect() -> None:
    survey = load_health_survey()
    assert survey.data.shape == (253_680, 21)
    assert survey.target.shape == (253_680,)
    assert survey.frame.shape == (253_680, 22)
    assert survey.feature_names == list(survey.data.columns)
    assert len(survey.target_names) == 2
    assert "public domain" in survey.DESCR


def test_arrays_equal_the_frame(frame: pd.DataFrame) -> None:
    survey = load_health_survey(as_frame=False)
    assert survey.frame is None
    X, y = load_health_survey(return_X_y=True, as_frame=False)
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    np.testing.assert_array_equal(np.column_stack([X, y]), frame.to_numpy())
    np.testing.assert_array_equal(survey.data, X)


def test_x_and_y_as_frames(frame: pd.DataFrame) -> None:
    X, y = load_health_survey(return_X_y=True)
    pd.testing.assert_frame_equal(X, frame.drop(columns="label"))
    pd.testing.assert_series_equal(y, frame["label"])


def test_every_answer_lies_within_the_declared_bounds(frame: pd.DataFrame) -> None:
    assert list(HEALTH_SURVEY_BOUNDS) == list(frame.columns.drop("label"))
    for name, (low, high) in HEALTH_SURVEY_BOUNDS.items():
        assert frame[name].between(low, high).all(), name
    assert set(frame["label"]) == {0, 1}
    assert HEALTH_SURVEY_MEANINGS.keys() == HEALTH_SURVEY_BOUNDS.keys()


def test_the_options_are_keyword_only_and_the_bounds_are_frozen() -> None:
    with pytest.raises(TypeError):
        load_health_survey("frame")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError):
        HEALTH_SURVEY_BOUNDS["BMI"] = (0, 1)  # type: ignore[index]
