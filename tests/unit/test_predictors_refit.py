"""A predictor that is fitted again while others ask."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from cumae import LiveState, QueryRelease
from cumae.concepts import Thresholds

ROWS = np.linspace(0, 1, 200)[:, None]


@pytest.mark.claim("QUERY")
def test_who_waits_while_it_is_fitted_again_is_told() -> None:
    release = QueryRelease(Thresholds(), epsilon=20.0, max_queries=20, classes=("no", "yes"))
    release.fit(ROWS, np.where(ROWS[:, 0] > 0.5, "yes", "no"))
    told: list[BaseException] = []

    def ask() -> None:
        try:
            release.predict([[0.9]])
        except LiveState as error:
            told.append(error)

    with release._counter_._lock:  # as a fit holds it
        thread = threading.Thread(target=ask)
        thread.start()
        while not release._counter_._queue._waiting:
            time.sleep(0.001)
        release.set_params(classes=(0, 1))
        release.fit(ROWS, (ROWS[:, 0] > 0.5).astype(int))
    thread.join()
    assert "fitted again" in str(told[0])
    assert release.remaining_ == 20
