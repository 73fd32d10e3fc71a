"""Everything that a release must remember."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from cumae.arrays import Floats
from cumae.concepts import Hypothesis
from cumae.predictors.estimators import estimator_from_plain, estimator_to_plain, given_as
from cumae.predictors.release.first import FirstStage
from cumae.predictors.release.offline import Offline
from cumae.predictors.release.students import Lesson, Student
from cumae.predictors.release.voting import Voting
from cumae.predictors.state import State
from cumae.predictors.stateful import Fitted


@dataclass(repr=False)  # a message must not show what it holds
class ReleaseState(State):
    """Everything that a ``QueryRelease`` must remember.

    Parameters
    ----------
    fitted : Fitted
        What fit fixed.
    voting : Voting, or None
        Models that vote, and the mechanism; None if all queries are answered at once.
    offline : Offline, or None
        Rows that wait for all queries at once, or what was published.
    answered : int
        Answers given since fit.
    """

    kind = "QueryRelease"

    fitted: Fitted
    voting: Voting | None = None
    offline: Offline | None = None
    answered: int = 0

    @property
    def remaining(self) -> int:
        """Answers left."""
        return self.need_voting().remaining if self.offline is None else self.offline.remaining

    def need_voting(self) -> Voting:
        """Return what votes."""
        if self.voting is None:
            raise AssertionError("nothing votes here")
        return self.voting

    def to_facts(self) -> dict[str, Any]:
        return {
            "fitted": self.fitted.to_facts(),
            "voting": None if self.voting is None else self.voting.to_facts(),
            "offline": None if self.offline is None else self.offline.to_facts(),
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> Self:
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        if (facts["voting"] is None) == (facts["offline"] is None):
            raise TypeError("two ways to answer, or none")  # from_arrays says that it is broken
        voting, offline = facts["voting"], facts["offline"]
        return cls(
            fitted,
            None if voting is None else Voting.from_facts(voting, fitted),
            None if offline is None else Offline.from_facts(offline, fitted),
            facts["answered"],
        )


class AgnosticState(ReleaseState):
    """Everything that an ``AgnosticQueryRelease`` must remember."""

    kind = "AgnosticQueryRelease"


@dataclass(repr=False)
class UniversalState(State):
    """Everything that a ``UniversalQueryRelease`` must remember.

    Parameters
    ----------
    fitted : Fitted
        What fit fixed.
    student : classifier or Pipeline, or None
        The parameter.
    first : FirstStage
        The first stage, and all that was asked and answered in it.
    waiting : Offline, or None
        Rows that wait for the draw of a hypothesis; None if a student is trained.
    published : Hypothesis or Student, or None
        What answers in the second stage, once it is there.
    answered : int
        Answers given since fit.
    """

    kind = "UniversalQueryRelease"

    fitted: Fitted
    student: Any
    first: FirstStage
    waiting: Offline | None = None
    published: Hypothesis | Student | None = None
    answered: int = 0

    def given(self) -> dict[str, Any]:
        return {**super().given(), "student": self.student}

    def keep(self, rows: Any, weights: Floats, ids: tuple[Any, Any]) -> None:
        del ids
        self.first.lessons.append(Lesson(rows, weights))

    def prepare(self, following: Any, taken: int) -> None:
        del taken
        self.first.close()  # all votes were counted
        self.student = following

    def enter(self, phase: Hypothesis | Student) -> None:
        self.published = phase

    def to_facts(self) -> dict[str, Any]:
        published = self.published
        return {
            "fitted": self.fitted.to_facts(),
            "student": None if self.student is None else estimator_to_plain(self.student),
            "first": self.first.to_facts(),
            "waiting": None if self.waiting is None else self.waiting.to_facts(),
            # The lessons of the first stage are stored already, and a hypothesis with its rows.
            "seed": published.seed if isinstance(published, Student) else None,
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> Self:
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        student, waiting = facts["student"], facts["waiting"]
        if student is not None:
            student = estimator_from_plain(student, given_as("student", estimator))
        first = FirstStage.from_facts(facts["first"], fitted)
        if waiting is not None:
            waiting = Offline.from_facts(waiting, fitted)
        found = cls(fitted, student, first, waiting, answered=facts["answered"])
        if waiting is not None:
            found.published = waiting.hypothesis
        elif facts["seed"] is not None:
            found.published = found.taught(facts["seed"])
        return found

    def taught(self, seed: int) -> Student:
        """Return a student that was trained on all that the first stage answered."""
        student = self.fitted.model if self.student is None else self.student
        return Student.taught(student, self.first.lesson, self.fitted.classes, seed)
