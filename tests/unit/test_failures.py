"""Models that fail in every way: nobody notices it, except whoever interrupts them."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import cumae
from cumae import (
    Adapter,
    EverlastingPredictor,
    InvalidData,
    InvalidParameter,
    PrivateBooster,
    QueryRelease,
)
from cumae.checks.failures import FAILURES, Panic
from cumae.concepts import Thresholds
from cumae.ensembles.trainer import Trainer, train_one_by_one
from cumae.ensembles.travel import Traveller
from cumae.quiet import HiddenFailures
from tests.oracles import ROWS, SHARED

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

SOURCE = Path(__file__).resolve().parents[2] / "src" / "cumae"
Y = (ROWS[:, 0] > 0.3).astype(int)
HUGE = 1e7  # in a row, it makes models fail


class Brittle(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Raises an error of a given kind if a table holds a huge number."""

    def __init__(self, kind: Any = Panic, when: str = "fit") -> None:
        self.kind = kind
        self.when = when

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Brittle:
        del sample_weight
        self._look(X, "fit")
        self.classes_ = np.unique(y)
        self.huge_ = bool(np.any(X >= HUGE))
        return self

    def predict(self, X: Any) -> Any:
        self._look(X, "predict")
        return (np.asarray(X)[:, 0] > 0.3).astype(int)

    def _look(self, X: Any, when: str) -> None:
        if self.when == when and np.any(X >= HUGE):
            raise self.kind

    def __reduce__(self) -> Any:
        if self.when == "pickle" and getattr(self, "huge_", False):
            raise self.kind
        return super().__reduce__()

    def __setstate__(self, state: Any) -> None:
        if state["when"] == "unpickle" and state.get("huge_"):
            raise self.kind
        self.__dict__.update(state)


def with_huge(rows: Any) -> Any:
    changed = rows.copy()
    changed[9] = HUGE
    return changed


def brittle(kind: Any, when: str = "fit", **more: Any) -> EverlastingPredictor:
    return EverlastingPredictor(Brittle(kind, when), **{**SHARED, "shard_size": 20, **more})


KINDS = [*FAILURES.values(), ValueError]


@pytest.mark.claim("SHARDS", "EVER")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("when", ["fit", "predict"])
@pytest.mark.parametrize("more", [{}, {"late": 0.25, "background": True}], ids=["at once", "later"])
def test_a_row_and_a_query_on_which_models_fail_stop_nobody(
    kind: Any, when: str, more: Any
) -> None:
    one = brittle(kind, when, **more).fit(with_huge(ROWS), Y)
    assert one.n_shards_ == 20
    assert one.predict(with_huge(ROWS)).shape == (400,)
    answers = one.predict([[0.05], [HUGE], [0.9]])
    assert one.phase_ == 2  # trained on a query on which models fail
    assert answers.tolist()[::2] == [0, 1]


@pytest.mark.claim("STORE", "SHARDS")
def test_an_oracle_survives_a_query_on_which_models_fail(tmp_path: Path) -> None:
    path = tmp_path / "oracle.db"
    brittle(SystemExit).fit(ROWS, Y).save_to(path)
    stored = cumae.open(path, estimator=Brittle(SystemExit))
    stored.predict(with_huge(ROWS))
    assert stored.predict([[0.9]]).tolist() == [1]
    stored.close()
    stored = cumae.open(path, estimator=Brittle(SystemExit))
    assert (stored.predict([[0.05]]).tolist(), stored.phase_) == ([0], 2)
    stored.close()


class GrimPrior(PrivateBooster):
    """A prior that fails when it is asked about a marked row."""

    def predict_proba(self, X: Any) -> Any:
        for mark, kind in FAILURES.items():
            if np.any(np.asarray(X) == mark):
                raise kind
        return super().predict_proba(X)


@pytest.mark.claim("PRIOR")
def test_a_query_on_which_the_prior_fails_in_any_way_changes_no_other_answer() -> None:
    given: dict[str, Any] = {**SHARED, "prior": GrimPrior(), "columns": [(0, 1)]}
    given |= {"estimator": None, "prior_share": 0.5, "random_state": 3}
    table = np.tile([[0.05], [0.9]], (len(FAILURES), 1))
    other = table.copy()
    other[::2, 0] = list(FAILURES)
    found = [EverlastingPredictor(**given).fit(ROWS, Y).predict(asked) for asked in (table, other)]
    assert found[0][1::2].tolist() == found[1][1::2].tolist()


def in_a_thread(call: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.claim("SHARDS")
def test_an_interrupt_comes_from_the_user_in_the_main_thread_only() -> None:
    for when, rows in (("fit", with_huge(ROWS)), ("predict", ROWS)):
        one = brittle(KeyboardInterrupt, when)
        if when == "fit":
            with pytest.raises(KeyboardInterrupt):
                one.fit(rows, Y)
            in_a_thread(partial(one.fit, rows, Y))
        one.fit(ROWS, Y)
        if when == "predict":
            with pytest.raises(KeyboardInterrupt):
                one.predict([[HUGE]])
        assert in_a_thread(partial(one.predict, [[HUGE], [0.9]])).shape == (2,)


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("when", ["fit", "predict", "pickle", "unpickle"])
def test_a_model_that_fails_in_a_worker_or_on_the_way_fails_alone(when: str) -> None:
    """With two processes; models go to workers for training, come back, and go there to vote."""
    one = brittle(Panic, when, n_jobs=2).fit(with_huge(ROWS), Y)
    assert one.n_shards_ == 20
    here = brittle(Panic, when).fit(with_huge(ROWS), Y)
    with joblib.parallel_config(n_jobs=2):
        for made in (one, here):
            assert made.predict([[0.05], [HUGE], [0.9]]).tolist()[::2] == [0, 1]


def test_a_traveller_that_cannot_travel_is_nobody() -> None:
    for model in (lambda: None, 3, None):
        assert type(joblib.externals.loky.backend.reduction.loads(_sent(model)).model) is type(
            model
        )
    broken = Brittle(GeneratorExit, "pickle").fit(np.array([[HUGE]]), [1])
    assert joblib.externals.loky.backend.reduction.loads(_sent(broken)).model is None


def _sent(model: Any) -> bytes:
    return bytes(joblib.externals.loky.backend.reduction.dumps(Traveller(model)))


class Evil:
    """A cell that raises whatever is asked of it."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def _raise(self, *_: Any) -> Any:
        raise self.kind

    __float__ = __int__ = __index__ = __len__ = __iter__ = __bool__ = __str__ = __repr__ = _raise
    __eq__ = __hash__ = __array__ = __getitem__ = _raise


@pytest.mark.claim("EVER", "SHARDS")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_cell_that_raises_anything_is_unusable_and_no_more(kind: Any) -> None:
    rows = ROWS.astype(object)
    rows[9, 0] = Evil(kind)
    labels = Y.astype(object)
    labels[8] = Evil(kind)
    given: dict[str, Any] = {**SHARED, "concept_class": Thresholds()}
    one = EverlastingPredictor(**given).fit(rows, labels)
    for odd in (Evil(kind), [Evil(kind)], [[Evil(kind)]]):
        assert one.predict([[0.05], odd, [0.9]]).tolist() == [0, -1, 1]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_estimator_that_always_fails_is_refused_beforehand(kind: Any) -> None:
    class Never(Brittle):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            raise self.kind

    with pytest.raises(InvalidParameter, match=f"made-up rows.*{kind.__name__}"):
        QueryRelease(Never(kind), 9.0, max_queries=10, n_shards=20).fit(ROWS, Y)
    learner = Adapter(Never(kind), epsilon=1.0, delta=0.0, columns=[(0, 1)])
    with pytest.raises(InvalidData, match="could not be fitted"):
        learner.fit(ROWS, Y)


def test_what_is_hidden_is_a_failure_and_nothing_else() -> None:
    for kind in KINDS:
        with HiddenFailures():
            raise kind
    with pytest.raises(KeyboardInterrupt), HiddenFailures():
        raise KeyboardInterrupt


# Modules that handle ``Exception`` alone, and why that is enough there.
ENOUGH = {
    "cli/app.py": "prints errors of a command; an exit is an exit",
    "audit/runs.py": "adds a note to an error and raises it again",
    "checks/learners.py": "turns an error of a learner of ours into a broken law",
    "checks/replay.py": "an event of ours that lacks a field may fail in any way of ours",
    "checks/payments.py": "turns an error of a learner of ours into a broken law",
    "serve/app.py": "whatever a reply fails with, one table says what leaves",
    "serve/models.py": "raises again what an oracle raised, after it has noted it",
    "store/writer.py": "errors of disks and keys; what ends a program is raised after it",
    "engines/on_dask.py": "what an error of a worker says stays with Dask; its class alone is told",
    "engines/on_ray.py": "what an error of a worker says stays with Ray; its class alone is told",
    "engines/on_spark.py": "what an error of a worker says stays with Spark",
    "filesystems.py": "each file system has errors of its own",
    "engines/engine.py": "what else ends a piece ends its worker, and the engine's run with it",
    "predictors/answering/counter.py": "errors of ours, about what was given with a call",
    "predictors/answering/queue.py": "an error that cannot be made again is told in other words",
}


def _of_exceptions(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            if ast.unparse(node.type) == "Exception":
                yield node
        elif isinstance(node, ast.Call) and ast.unparse(node).endswith("suppress(Exception)"):
            yield node


def test_code_of_others_is_never_trusted_to_raise_exceptions_only() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(_of_exceptions(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == set(ENOUGH)


# What joblib writes to temporary folders


class Looking(LogisticRegression):  # type: ignore[misc]  # untyped base
    """Writes down which files lie in the temporary folder of joblib while it learns.

    It answers 1, or 0 if a file lies there.
    """

    def __init__(self, folder: str = "") -> None:
        super().__init__()
        self.folder = folder

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.seen_ = _files_in(self.folder)
        return super().fit(X[:20], y[:20])

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 0 if _files_in(self.folder) else 1)


def _files_in(folder: str) -> list[str]:
    return [str(path) for path in Path(folder).rglob("*") if path.is_file()]


WIDE = np.random.default_rng(0).random((6_000, 100))
HALVES = (WIDE[:, 0] > 0.5).astype(int)


def test_no_private_row_is_written_to_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays above a megabyte, which joblib would write there in clear."""
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    shared: dict[str, Any] = {"epsilon": 50.0, "max_queries": 200, "n_shards": 2, "n_jobs": 2}
    with joblib.parallel_config(max_nbytes="100K"):  # also if the user asks for it
        one: Any = QueryRelease(Looking(str(tmp_path)), **shared).fit(WIDE, HALVES)
        (voters,) = one._state_.voting.ensemble.voters
        assert [made.seen_ for made in voters.models] == [[], []]
        with joblib.parallel_config(n_jobs=2):
            votes = one._state_.voting.ensemble.votes(WIDE[:2_000])
    assert votes.tolist() == [[0, 2]] * 2_000


def test_models_that_start_workers_themselves_write_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    model = OneVsRestClassifier(Looking(str(tmp_path)), n_jobs=2)
    labels = HALVES + (WIDE[:, 0] > 0.7)
    ends, seeds = np.array([0, len(WIDE)]), np.array([1])
    (made,) = train_one_by_one(Trainer(model, 3), WIDE, labels, ends, seeds)
    assert [part.seen_ for part in made.estimators_] == [[], [], []]


def test_joblib_is_asked_through_one_function_only() -> None:
    found = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "Parallel(" in path.read_text(encoding="utf-8").replace("class Parallel(", "")
    ]
    assert sorted(found) == ["privacy/transforms/disjoint.py", "workers.py"]  # the former: a cost
