"""Opening an oracle loads what answers need: the first one imports and compiles nothing."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae import EverlastingPredictor, GenericBBL, PrivateBooster, QueryRelease, randomness
from cumae.checks.differences import difference
from cumae.concepts import Thresholds
from cumae.estimators import own_clone
from cumae.predictors.answering.counter import Counter
from cumae.predictors.state import State
from cumae.store.writer import Writer
from tests.kinds import KINDS, as_array, labels_of

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(5)
ROWS = RNG.random((600, 3))
LABELS = (ROWS[:, 0] > 0.4).astype(int)
UNIT: Any = [(0, 1)] * 3
ALL_KINDS = as_array(600)
TREE = DecisionTreeClassifier(max_depth=2)

# In a process of its own: what is loaded between the end of opening and the end of an answer.
FIRST_ANSWER = """
import json, sys
import cumae
path, row = sys.argv[1], json.loads(sys.argv[2])
oracle = cumae.open(path)
from numba.core import caching, event

heard = []

class Heard(event.Listener):
    def on_start(self, one):
        heard.append(f"compiles {one.data['dispatcher'].py_func.__name__}")
    def on_end(self, one):
        pass

load = caching.Cache.load_overload

def loading(self, *given):
    heard.append(f"loads {self._name}")
    return load(self, *given)

event.register("numba:compile", Heard())
caching.Cache.load_overload = loading
before = set(sys.modules)
answers = len(oracle.predict([row]))
oracle.close()
heard += sorted(set(sys.modules) - before)
print(json.dumps([answers, heard]))
"""

ORACLES: dict[str, tuple[Any, Any, Any]] = {
    "votes": (EverlastingPredictor(TREE, 9.0, columns=UNIT, prior=False), ROWS, LABELS),
    "kernel prior": (EverlastingPredictor(TREE, 9.0, columns=UNIT), ROWS, LABELS),
    "kernel prior, all kinds": (
        EverlastingPredictor(TREE, 9.0, columns=KINDS),
        ALL_KINDS,
        labels_of(ALL_KINDS),
    ),
    "trees as a prior": (
        EverlastingPredictor(TREE, 9.0, columns=UNIT, prior=PrivateBooster()),
        ROWS,
        LABELS,
    ),
    "thresholds": (EverlastingPredictor(Thresholds(), 9.0), ROWS[:, :1], LABELS),
    "thresholds that halt": (GenericBBL(Thresholds(), 20.0, shard_size=4), ROWS[:, :1], LABELS),
    "release": (QueryRelease(TREE, 9.0, max_queries=50), ROWS, LABELS),
}


def stored(name: str, path: Path) -> list[float]:
    """Store an oracle in a file, and return a query for it."""
    one, rows, labels = ORACLES[name]
    fitted = own_clone(one).fit(rows, labels)
    fitted.save_to(path)
    fitted.close()
    found: list[float] = np.nan_to_num(rows[-1]).tolist()
    return found


@pytest.mark.parametrize("name", ORACLES)
def test_the_first_answer_imports_and_compiles_nothing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "oracle.db"
    row = json.dumps(stored(name, path))
    cumae.open(path).close()  # what is compiled at all is in the cache from here on
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_ANSWER, str(path), row], capture_output=True, check=True
    )
    assert json.loads(ran.stdout) == [1, []]


@pytest.mark.claim("STORE")
@pytest.mark.parametrize("name", ORACLES)
def test_a_warm_up_costs_draws_and_writes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "oracle.db"
    stored(name, path)
    oracle: Any = cumae.open(path)
    seen: list[str] = []

    def spy(patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        plain = getattr(owner, name)

        def called(*given: Any) -> Any:
            seen.append(name)  # an error would be hidden
            return plain(*given)

        patch.setattr(owner, name, called)

    before = oracle._counter_.state.to_arrays(), oracle.remaining_
    with monkeypatch.context() as patch:
        spy(patch, type(oracle), "_answers")
        for owner, method in ((Writer, "add"), (Writer, "commit"), (Counter, "take")):
            spy(patch, owner, method)
        spy(patch, State, "reserve")
        spy(patch, randomness.SystemSource, "words")
        oracle.warm_up()
    assert set(seen) == {"_answers"}
    after = oracle._counter_.state.to_arrays(), oracle.remaining_
    assert difference(after, before) == ""
    assert oracle._counter_.coins._streams == {}  # nothing was drawn ahead
    assert oracle._counter_.state.answered == 0
    oracle.close()


def test_what_is_loaded_may_be_kept_out_of_the_collectors_way(tmp_path: Path) -> None:
    path = tmp_path / "oracle.db"
    row = stored("thresholds", path)
    gc.unfreeze()  # whoever runs the tests may have frozen something
    cumae.open(path).close()
    assert gc.get_freeze_count() == 0  # nothing is frozen unless it is asked for
    oracle = cumae.open(path, freeze=True)
    try:
        assert gc.get_freeze_count() > 10_000
        first, state = weakref.ref(oracle._state_.phase), weakref.ref(oracle._state_)
        while oracle.phase_ == 1:  # what was frozen of a phase goes when the phase ends
            oracle.predict([row] * 50)
        gc.collect()
        assert first() is None
        assert state() is not None
        oracle.close()
        cumae.open(path).close()  # a frozen one lets go of its lock
        del oracle
        gc.collect()
        assert state() is None
    finally:
        gc.unfreeze()
