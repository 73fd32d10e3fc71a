"""Everything that a release must remember."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.codec import to_plain
from cumae.concepts import Hypothesis
from cumae.data import label_codes, row_source
from cumae.errors import InvalidParameter
from cumae.mechanisms import Spent, VoteRule
from cumae.mechanisms.base import check_left
from cumae.parameters import check_count
from cumae.predictors.answering.events import Event, Used
from cumae.predictors.estimators import estimator_from_plain, estimator_to_plain, given_as
from cumae.predictors.release.offline import Offline
from cumae.predictors.release.students import Lesson, Student
from cumae.predictors.release.voting import Voting
from cumae.predictors.state import State
from cumae.predictors.stateful import Fitted
from cumae.predictors.waiting import KeptRows
from cumae.privacy import Cost
from cumae.privacy.validation import plain_number

NOTHING_SPENT = Spent()


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
    spent : Spent
        Counters of the mechanism.
    answered : int
        Answers given since fit.
    """

    kind = "QueryRelease"

    fitted: Fitted
    voting: Voting | None = None
    offline: Offline | None = None
    spent: Spent = NOTHING_SPENT
    answered: int = 0

    @property
    def rule(self) -> VoteRule | None:
        return None if self.voting is None else self.voting.rule

    @property
    def phase_number(self) -> int:
        return 1 if self.offline is None or self.offline.hypothesis is None else 2

    @property
    def remaining(self) -> int:
        """Answers left."""
        return self.left if self.offline is None else self.offline.remaining

    @property
    def cost(self) -> Cost | None:
        if self.offline is None:
            return super().cost
        if self.offline.hypothesis is not None:
            return None
        return self.offline.concept.choose_cost(self.offline.epsilon)

    def need_voting(self) -> Voting:
        """Return what votes."""
        if self.voting is None:
            raise AssertionError("nothing votes here")
        return self.voting

    @claim("QUERY")
    def reserve(self, count: int) -> Any:
        if self.offline is None:
            return super().reserve(count)
        rows = self.offline.need_rows()
        self.use()
        return rows

    def use(self) -> None:
        if self.offline is not None:
            self.offline = replace(self.offline, rows=None)

    def lost(self, recorded: int) -> Event | None:
        if self.offline is not None and self.offline.rows is None and self.phase_number == 1:
            return Used(self.spent)
        return super().lost(recorded)

    def to_facts(self) -> dict[str, Any]:
        return {
            "fitted": self.fitted.to_facts(),
            "voting": None if self.voting is None else self.voting.to_facts(),
            "offline": None if self.offline is None else self.offline.to_facts(),
            "spent": self.spent.to_array(),
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> Self:
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        if (facts["voting"] is None) == (facts["offline"] is None):
            raise TypeError("two ways to answer, or none")  # from_arrays says that it is broken
        voting, offline = facts["voting"], facts["offline"]
        voting = None if voting is None else Voting.from_facts(voting, fitted)
        spent = Spent.from_array(facts["spent"])
        return cls(
            fitted,
            voting,
            None if offline is None else Offline.from_facts(offline, fitted),
            spent if voting is None else voting.rule.check(spent),
            facts["answered"],
        )


class AgnosticState(ReleaseState):
    """Everything that an ``AgnosticQueryRelease`` must remember."""

    kind = "AgnosticQueryRelease"

    @property
    def steps(self) -> list[dict[str, Any]]:
        shown, stages = self.fitted.shown, self.fitted.shown["stages_"]
        found = {
            "n_rows": stages[-1]["rows"],
            "n_sampled": shown["n_sampled_"],
            "epsilon_boost": shown["epsilon_boost_"],
            "epsilon_answers": shown["epsilon_answers_"],
            "delta_answers": stages[0]["delta"],
            "resample": any(stage["name"] == "resampled" for stage in stages),
        }
        if any(stage.get("candidates") == "grid" for stage in stages):
            found["candidates"] = "grid"
        return [_relabelled(found, self.fitted.model)]


@dataclass(repr=False)
class UniversalState(State):
    """Everything that a ``UniversalQueryRelease`` must remember.

    Parameters
    ----------
    fitted : Fitted
        What fit fixed.
    student : classifier or Pipeline, or None
        The parameter.
    n_first : int
        Number of queries of the first stage.
    voting : Voting, or None
        Models that vote in the first stage, and the mechanism; they are dropped at its end.
    waiting : Offline, or None
        Rows that wait for the draw of a hypothesis; None if a student is trained.
    published : Hypothesis or Student, or None
        What answers in the second stage, once it is there.
    kept : KeptRows
        The queries of the first stage and the shares of their answers: both are public.
    spent : Spent
        Counters of the first stage. Queries count that were not looked at, too.
    answered : int
        Answers given since fit.
    """

    kind = "UniversalQueryRelease"

    fitted: Fitted
    student: Any
    n_first: int
    voting: Voting | None
    waiting: Offline | None = None
    published: Hypothesis | Student | None = None
    kept: KeptRows = field(default_factory=KeptRows)
    spent: Spent = NOTHING_SPENT
    answered: int = 0

    @property
    def rule(self) -> VoteRule | None:
        return None if self.voting is None else self.voting.rule

    @property
    def phase_number(self) -> int:
        return 1 if self.published is None else 2

    @property
    def releases(self) -> int:
        return self.n_first

    @property
    def left(self) -> int:
        """Queries that the first stage still takes."""
        return self.n_first - self.spent.asked

    @property
    def lesson(self) -> Lesson:
        """All queries of the first stage so far, and what was answered to them."""
        reader, rows = self.fitted.reader, self.kept.rows
        if rows is None:
            return Lesson(reader.nothing(), np.zeros((0, self.fitted.n_classes)))
        return Lesson(reader.unpacked(rows), self.kept.weights)

    @property
    def steps(self) -> list[dict[str, Any]]:
        first, second = self.fitted.shown["stages_"]
        found = []
        if "n_sampled" in first:
            found.append(_relabelled({**first, "n_rows": first["rows"]}, self.fitted.model))
        if second["name"] == "hypothesis":
            pays = {name: plain_number(first[name]) for name in ("epsilon", "delta")}
            found.append({"step": "drawn", "after": plain_number(second["epsilon"]), **pays})
        return found

    def given(self) -> dict[str, Any]:
        return {**super().given(), "student": self.student}

    def use(self) -> None:
        self.voting = None  # all votes were counted
        if self.waiting is not None:
            self.waiting = replace(self.waiting, rows=None)

    def to_facts(self) -> dict[str, Any]:
        published = self.published
        return {
            "fitted": self.fitted.to_facts(),
            "student": None if self.student is None else estimator_to_plain(self.student),
            "n_first": self.n_first,
            "voting": None if self.voting is None else self.voting.to_facts(),
            "waiting": None if self.waiting is None else self.waiting.to_facts(),
            # The lessons of the first stage are stored already, and a hypothesis with its rows.
            "seed": np.array(published.seed) if isinstance(published, Student) else None,
            "kept": self.kept.to_facts(),
            "spent": self.spent.to_array(),
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> Self:
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        student, voting, waiting = facts["student"], facts["voting"], facts["waiting"]
        if student is not None:
            student = estimator_from_plain(student, given_as("student", estimator))
        n_first = check_count(facts["n_first"], "n_first", least=1)
        found = cls(
            fitted,
            student,
            n_first,
            None if voting is None else Voting.from_facts(voting, fitted),
            None if waiting is None else Offline.from_facts(waiting, fitted),
            kept=KeptRows.from_facts(facts["kept"]),
            spent=Spent.from_array(facts["spent"]),
            answered=facts["answered"],
        )
        check_left(found.spent.asked, n_first, "asked")
        if voting is None and found.left:
            raise InvalidParameter("a stored stage has parts that do not match.")
        if found.waiting is not None:
            found.published = found.waiting.hypothesis
        elif facts["seed"] is not None:
            found.published = found.taught(int(facts["seed"]))
        return found

    def published_labels(self, table: Any) -> Integers:
        """Return what was published says about queries: places of classes."""
        published: Any = self.published
        if self.waiting is not None:
            return np.asarray(published.predict(table), dtype=np.int64)
        found = published.model.predict(table)
        return label_codes(row_source(table), found, self.fitted.classes.tolist())

    def taught(self, seed: int) -> Student:
        """Return a student that was trained on all that the first stage answered."""
        student = self.fitted.model if self.student is None else self.student
        student = self.fitted.reader.shard_model(student)
        return Student.taught(student, self.lesson, self.fitted.classes, seed)


def _relabelled(found: dict[str, Any], concept: Any) -> dict[str, Any]:
    """Return the step by which rows are drawn and labelled before they are split into shards."""
    names = ("n_rows", "n_sampled", "epsilon_boost", "epsilon_answers", "delta_answers")
    pays = {name: plain_number(found[name]) for name in names}
    return {
        "step": "relabelled",
        **pays,
        "resample": found["resample"],
        "concept": to_plain(concept),
        **{name: found[name] for name in ("candidates",) if name in found},
    }
