"""Steps of the demo: a published model, a durable oracle that is killed, and attacks on both."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

import cumae
from cumae import EverlastingPredictor, PrivateClassifier, PrivateLogisticRegression
from cumae.audit import Audit, audit, catalogue
from cumae.datasets import load_health_survey
from cumae.errors import StoreFailed
from cumae.planning import plan
from cumae.privacy import Guarantee
from cumae.serve.pages.facts import effects_in
from cumae.store import destroy, status
from cumae.threads import one_core

DELTA = 1e-6
SHARES = {1: 0.43}  # about so many have high blood pressure, as other surveys say
# Two of five rows ask: a split that involves no chance and looks at no row.
GROUPS, ASKING = 5, 2
BATCHES = 20
CURVE = (0.003, 0.01, 0.03, 0.1, 1.0)
CURVE_OF_PUBLISHED = (0.01, 0.1)
# Attacks are played at the demo's epsilon, and where there is more to find.
TIMES = (1, 8)
RUNS = 200_000


@dataclass(frozen=True, eq=False)
class Interviews:
    """The survey, divided into people to learn from and people who ask.

    Parameters
    ----------
    X, y : DataFrame and Series
        Private rows and their labels.
    questions, truth : DataFrame and array
        What others ask, and what would be right.
    columns : dict
        The ranges of the columns, from the survey's code book.
    """

    X: Any
    y: Any
    questions: Any
    truth: NDArray[Any]
    columns: dict[str, Any]

    @classmethod
    def read(cls, rows: int, questions: int) -> Interviews:
        """Read some rows of the bundled survey."""
        survey = load_health_survey()
        data, target = survey.data.iloc[:rows], survey.target.iloc[:rows]
        asks = np.arange(len(data)) % GROUPS < ASKING
        return cls(
            data[~asks],
            target[~asks],
            data[asks].iloc[:questions],
            target[asks].iloc[:questions].to_numpy(),
            {name: (low, high, 1) for name, (low, high) in survey.bounds.items()},
        )

    @property
    def guessing(self) -> float:
        """The accuracy of always giving the more frequent answer."""
        return float(max(self.truth.mean(), 1 - self.truth.mean()))

    def accuracy(self, model: Any) -> float:
        """Return for how many of the people who ask a model is right."""
        return float((model.predict(self.questions) == self.truth).mean())


def planner_says(interviews: Interviews, epsilon: float) -> str:
    """Return what the planner says about a survey of this size, which is all that it sees."""
    size, columns = len(interviews.X), interviews.columns
    found = plan(
        size,
        columns=columns,
        epsilon=epsilon,
        delta=DELTA,
        classes=("no", "yes"),  # in the words of the demo's next lines
        class_shares={"yes": SHARES[1]},
    )
    return found.sentence


@dataclass(frozen=True)
class Publication:
    """The published model, and what it is compared with.

    Parameters
    ----------
    name : str
        Its class.
    guarantee : Guarantee
        What it promises.
    accuracy : float
        Its accuracy.
    without : float
        That of gradient boosting without privacy.
    curve : sequence of pairs of float
        Epsilon and accuracy of private logistic regression.
    own_curve : sequence of pairs of float
        The same of models like the published one, with itself among them.
    effects : list of dict
        What single columns say, by the published model, the strongest first.
    """

    name: str
    guarantee: Guarantee
    accuracy: float
    without: float
    curve: Sequence[tuple[float, float]]
    own_curve: Sequence[tuple[float, float]]
    effects: list[dict[str, Any]]


def publish(interviews: Interviews, epsilon: float, path: Path) -> Publication:
    """Publish the model that is planned, and see what other amounts of privacy would cost."""
    X, y, columns = interviews.X, interviews.y, interviews.columns
    model = PrivateClassifier(epsilon, DELTA, columns=columns, class_shares=SHARES).fit(X, y)
    model.save(path)
    with one_core():  # the other one is at work on the oracle
        free = HistGradientBoostingClassifier(random_state=0).fit(X, y)
        without = interviews.accuracy(free)
    curve = []
    for other in CURVE:
        simple = PrivateLogisticRegression(epsilon=other, delta=DELTA, columns=columns).fit(X, y)
        curve.append((other, interviews.accuracy(simple)))
    accuracy = interviews.accuracy(model)
    own = [(epsilon, accuracy)]
    for other in CURVE_OF_PUBLISHED:
        if other < epsilon:
            given = {**model.model_.get_params(deep=False), "epsilon": other}
            own.append((other, interviews.accuracy(type(model.model_)(**given).fit(X, y))))
    return Publication(
        type(model.model_).__name__,
        model.guarantee_,
        accuracy,
        without,
        tuple(curve),
        tuple(sorted(own)),
        effects_in(model),
    )


@dataclass(frozen=True)
class Batch:
    """Some answers of the oracle.

    Parameters
    ----------
    start : int
        The number of the first question.
    phase, models : int
        The oracle's phase, and how many models vote.
    answers : str
        One digit for each question.
    """

    start: int
    phase: int
    models: int
    answers: str

    def wrong(self, interviews: Interviews) -> float:
        """Return the share of wrong answers."""
        digits = np.array([int(digit) for digit in self.answers])
        right = interviews.truth[self.start : self.start + len(digits)]
        return float((digits != right).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)


def make_oracle(interviews: Interviews, epsilon: float, path: Path) -> Any:
    """Make a durable oracle; one of an earlier demo at that place is destroyed."""
    if path.exists():
        destroy(path)
    predictor = EverlastingPredictor(
        epsilon=epsilon, delta=DELTA, columns=interviews.columns, prior=PrivateLogisticRegression()
    )
    predictor.fit(interviews.X, interviews.y).save_to(path)
    return cumae.open(path)


def starts(interviews: Interviews) -> range:
    """Return where the batches of questions begin."""
    count = len(interviews.questions)
    return range(0, count, max(1, math.ceil(count / BATCHES)))


def ask(oracle: Any, interviews: Interviews, begins: Sequence[int]) -> Iterator[Batch]:
    """Ask batch after batch; an answer that was recorded before comes back without a new cost."""
    size = starts(interviews).step
    for start in begins:
        questions = interviews.questions.iloc[start : start + size]
        answers = oracle.predict(questions, request_id=f"demo {start}")
        digits = "".join(map(str, answers.tolist()))
        yield Batch(start, oracle.phase_, oracle.n_shards_, digits)


@dataclass(frozen=True)
class AnswerScenario:
    """The life of the oracle in its two processes.

    Parameters
    ----------
    guarantee : Guarantee
        What it promises.
    batches : sequence of Batch
        All answers, in order.
    killed : int
        How many answers the first process had given when it was killed.
    charged : int
        How many the second one had to count as given, because nobody knows.
    """

    guarantee: Guarantee
    batches: Sequence[Batch]
    killed: int
    charged: int

    def wrong(self, interviews: Interviews) -> float:
        """Return the share of wrong answers."""
        sizes = [len(batch.answers) for batch in self.batches]
        return float(np.average([batch.wrong(interviews) for batch in self.batches], weights=sizes))


def killed_at(
    command: Sequence[str], until: int, read: Callable[[str], Batch | int]
) -> list[Batch]:
    """Run a process that asks, kill it while it works on question ``until``, return its answers.

    Parameters
    ----------
    command : sequence of str
        The process. It writes a line before and after each batch.
    until : int
        It is killed when it begins a batch at or behind this question.
    read : callable
        Turns a line into the number of the first question of a batch that begins, or into the
        batch when it is answered.
    """
    found: list[Batch] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - for the type checker
        for line in process.stdout:
            if not line.endswith("\n"):
                break  # killed in the middle of a line
            said = read(line)
            if isinstance(said, Batch):
                found.append(said)
            elif said >= until:
                time.sleep(0.02)  # in the middle of an answer
                process.kill()
    if process.returncode != -signal.SIGKILL:
        raise StoreFailed(
            f"the process that asks ended with exit code {process.returncode} before it was "
            "killed; it said why on standard error."
        )
    return found


def asking_process(folder: Path, rows: int, questions: int, epsilon: float) -> list[str]:
    """Return the command of the process that makes the oracle and asks it.

    Parameters
    ----------
    folder : Path
        Where ``oracle.db`` will be.
    rows, questions : int
        Interviews of the survey, and questions to ask.
    epsilon : float
        What the oracle promises.
    """
    numbers = [str(number) for number in (rows, questions, epsilon)]
    return [sys.executable, "-m", "cumae.cli.demo.asking", str(folder / "oracle.db"), *numbers]


def go_on(interviews: Interviews, path: Path, before: Sequence[Batch]) -> AnswerScenario:
    """Open the oracle again in this process, and ask what has no answer yet."""
    oracle = cumae.open(path)
    charged = status(path).totals.charged
    known = {batch.start for batch in before}
    left = [start for start in starts(interviews) if start not in known]
    after = list(ask(oracle, interviews, left))
    promised = oracle.guarantee_
    oracle.close()
    given = sum(len(batch.answers) for batch in before)
    return AnswerScenario(promised, (*before, *after), given, charged)


@dataclass(frozen=True)
class Attacked:
    """The attacks on one target, and what an attacker could prove.

    Parameters
    ----------
    target : str
        What was attacked.
    audits : sequence of Audit
        The results, by rising claim.
    planted : sequence of Audit
        The same attacks on code with half the noise.
    """

    target: str
    audits: Sequence[Audit]
    planted: Sequence[Audit]

    @property
    def part(self) -> str:
        """The release that was attacked."""
        return self.audits[0].name.partition(", ")[2]


def attack(name: str, epsilon: float, seconds: float) -> list[Attacked]:
    """Attack what model and oracle release, on small tables, for so many seconds in all.

    Parameters
    ----------
    name : str
        The class of the model.
    epsilon, seconds : float
        The smallest epsilon that is claimed, and the time for all attacks.
    """
    targets = {"model": name, "oracle": "EverlastingPredictor"}
    chosen = [
        catalogue.first_attack(target, times * epsilon, DELTA)
        for target in targets.values()
        for times in TIMES
    ]
    turns = [each for one in chosen for each in (one, one.on_plant) if each is not None]
    weights = [1 / math.sqrt(one.claimed.epsilon) for one in turns]  # a small claim takes more runs
    end = time.monotonic() + seconds
    played: dict[tuple[str, float], Audit] = {}
    for place, one in enumerate(turns):
        left = (end - time.monotonic()) * weights[place] / sum(weights[place:])
        least = seconds * weights[place] / sum(weights) / 2
        found = audit(
            one,
            runs=RUNS,
            seconds=max(left, least),
            confidence=1 - 0.05 / len(chosen),
            progress=False,
        )
        played[one.name, one.claimed.epsilon] = found
    return [
        Attacked(
            shown,
            [one for one in played.values() if _is_on(one, name) and not one.planted],
            [one for one in played.values() if _is_on(one, name) and one.planted],
        )
        for shown, name in targets.items()
    ]


def _is_on(found: Audit, target: str) -> bool:
    return catalogue.audited(found.name) == target
