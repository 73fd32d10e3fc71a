"""The privacy game of paper 2 (Figure 1), as code.

Two worlds differ in one training row, in one query or in one row without a label; where rows belong
to users, in everything that one user contributes. The adversary picks both versions, asks what it
likes, and sees the answers to all queries but those that differ. Nothing that it computes from them
may tell the worlds apart better than the guarantee allows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cumae.audit.versions import Versions
from cumae.claims import claim
from cumae.data import check_ids
from cumae.errors import InvalidParameter
from cumae.quiet import is_failure

NOBODY = object()
PUBLIC = ("phase_", "answered_", "remaining_", "trust_", "prior_", "n_shards_", "noise_per_vote_")


class Driver(Protocol):
    """The way to what the game attacks: in this process, over HTTP, from a file.

    Some attacks need more: ``train(..., users=)`` and ``ask(..., users=, clients=)``, or
    ``supply(X)`` for rows without labels and ``label(X, y)`` for rows with later labels, all of
    which :class:`InProcess` has. Attacks on releases need ``releases(count)``, that many
    independent draws of what is released, one row each, and ``before()``, an array of all that
    noise is added to, which is the same whenever a world is trained.
    """

    def train(self, X: Any, y: Any) -> None:
        """Give it the private rows."""

    def ask(self, X: Any) -> Any:
        """Return one answer for each query."""

    def published(self) -> Any:
        """Return what everybody may see: a learner's model, or a predictor's counters and prior."""


class InProcess:
    """Drives a predictor or a learner of this package in the same process.

    Parameters
    ----------
    make : callable
        Returns a new one, not fitted.

    Examples
    --------
    >>> from cumae import QueryRelease
    >>> from cumae.audit.game import InProcess
    >>> driver = InProcess(lambda: QueryRelease(max_queries=5, epsilon=2.0))
    >>> driver.train([[0.0], [1.0]] * 500, [0, 1] * 500)
    >>> driver.ask([[0.0], [1.0]]).shape
    (2,)
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.estimator: Any = None

    def train(self, X: Any, y: Any, **whose: Any) -> None:
        self.estimator = self.make()
        self.estimator.fit(X, y, **whose)

    def ask(self, X: Any, **whose: Any) -> Any:
        return self.estimator.predict(X, **whose)

    def supply(self, X: Any) -> None:
        """Give it rows without labels."""
        self.estimator.add_unlabelled(X)

    def label(self, X: Any, y: Any) -> None:
        """Give it rows with labels, after it was trained."""
        self.estimator.add_labelled(X, y)

    def published(self) -> Any:
        if not hasattr(self.estimator, "remaining_"):
            return self.estimator
        return {name: getattr(self.estimator, name, None) for name in PUBLIC}


@dataclass(frozen=True)
class Seen:
    """One move as the adversary sees it: answers (None for hidden ones), and what was said.

    Parameters
    ----------
    answers : tuple
        One for each query; None at the query that differs, or at all of the user who differs.
    said : tuple of str
        Warnings and errors, each with its type and text. Whoever asks sees them, so they are part
        of the view like any answer.
    error : str
        The error among them that stopped the move, "" if there was none.
    """

    answers: tuple[Any, ...] = ()
    said: tuple[str, ...] = ()
    error: str = ""


@claim("AUDIT")
class Game:
    """Referee between an adversary and a driver in one of two worlds.

    Parameters
    ----------
    driver : Driver
        What is attacked. It gets tables as they are given: arrays, lists of rows, data frames.
    world : {0, 1}
        0 or 1. The adversary must not read it; it gets what its moves return.
    runs : int of 1 or more
        Independent runs that ``releases`` returns.

    Examples
    --------
    >>> from cumae import QueryRelease
    >>> from cumae.audit.game import Game, InProcess
    >>> game = Game(InProcess(lambda: QueryRelease(max_queries=9, epsilon=2.0)), world=1)
    >>> rows, labels = [[0.0], [1.0]] * 500, [0, 1] * 500
    >>> _ = game.train((rows, labels))
    >>> seen = game.ask([[0.0], [1.0]], [[0.0], [0.5]])  # the second query differs
    >>> len(seen.answers), seen.answers[1] is None
    (2, True)
    >>> game.ask([[0.2]], [[0.3]])  # no second difference
    Traceback (most recent call last):
    cumae.errors.InvalidParameter: the worlds differ already; ask the same in both.
    """

    def __init__(self, driver: Driver, world: int, runs: int = 1) -> None:
        self._driver: Any = driver  # which may have more than the least
        self._world, self._runs = world, runs
        self.differed = False  # whether the worlds differ already
        self._trained = False
        self._user: Any = NOBODY  # whose rows and queries differ, where they have users
        self.view: list[Seen] = []
        self.before = b""  # all that noise was added to, if releases were seen

    def train(
        self, zero: tuple[Any, Any], one: tuple[Any, Any] | None = None, *, users: Any = None
    ) -> Seen:
        """Train on the rows and labels of this world; the two versions differ in one row at most.

        What the owner sees while fitting is no release, so nothing of it is returned. A game trains
        once: another training is another release.

        Parameters
        ----------
        zero : pair of rows and labels
            The version of world 0.
        one : pair of rows and labels, or None
            The version of world 1; None if it is the same.
        users : array-like or None
            The user of each row. With users, the versions may differ in all rows of one
            user.
        """
        if self._trained:
            raise InvalidParameter("a game trains once; play another one.")
        self._trained = True
        other = zero if one is None else one
        rows, labels = Versions(zero[0], other[0]), Versions(zero[1], other[1])
        if len(rows) != len(labels):
            raise InvalidParameter(f"{len(rows)} rows, but {len(labels)} labels.")
        users = _ids(users, len(rows))
        self._differ(rows.different | labels.different, users)
        chosen = [both.of(self._world) for both in (rows, labels)]
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            self._driver.train(*chosen, **_given(users=users))
        return self._saw(Seen())

    def ask(self, zero: Any, one: Any = None, *, users: Any = None, clients: Any = None) -> Seen:
        """Ask queries in one call; the two versions differ in one at most, and once in a game.

        The answer to that one is hidden. Those to the others are seen, and so is everything that
        is said.

        Parameters
        ----------
        zero : table
            The queries of world 0.
        one : table or None
            The queries of world 1; None if they are the same.
        users : array-like or None
            Who asks each query. With users, all queries of one user may differ, in any
            number of moves.
        clients : array-like or None
            The client of each query, the same in both worlds. They are passed on.
        """
        users = _ids(users, len(zero))
        chosen, different = self._chosen(zero, one, users)
        whose = _given(users=users, clients=clients)
        answers, said, error = _heard(lambda: list(self._driver.ask(chosen, **whose)))
        if answers is None:
            answers = [None] * len(different)
        if len(answers) != len(different):
            raise InvalidParameter(
                f"the driver gave {len(answers)} answers to {len(different)} queries; give one "
                "each."
            )
        hidden = different if users is None else [user == self._user for user in users]
        for place in np.flatnonzero(hidden).tolist():
            answers[place] = None
        return self._saw(Seen(tuple(answers), said, error))

    def supply(self, zero: Any, one: Any = None) -> Seen:
        """Supply rows without labels; the two versions differ in one row at most."""
        chosen, _ = self._chosen(zero, one)
        _, said, error = _heard(lambda: self._driver.supply(chosen))
        return self._saw(Seen((), said, error))

    def label(self, zero: tuple[Any, Any], one: tuple[Any, Any] | None = None) -> Seen:
        """Add rows with labels after the training; the versions differ in one row at most."""
        other = zero if one is None else one
        rows, labels = Versions(zero[0], other[0]), Versions(zero[1], other[1])
        self._differ(rows.different | labels.different, None)
        chosen = [both.of(self._world) for both in (rows, labels)]
        _, said, error = _heard(lambda: self._driver.label(*chosen))
        return self._saw(Seen((), said, error))

    def _chosen(self, zero: Any, one: Any, users: Any = None) -> tuple[Any, NDArray[np.bool_]]:
        """Return this world's table, and which of its rows differ."""
        both = Versions(zero, zero if one is None else one)
        self._differ(both.different, users)
        return both.of(self._world), both.different

    def published(self) -> Any:
        """Return what everybody may see now."""
        return self._driver.published()

    def releases(self) -> Any:
        """Return what is released in ``runs`` independent runs after the moves so far."""
        self.before = self._driver.before().tobytes()
        return self._driver.releases(self._runs)

    def _saw(self, seen: Seen) -> Seen:
        self.view.append(seen)
        return seen

    def _differ(self, different: NDArray[np.bool_], users: list[Any] | None) -> None:
        """Check that the two worlds differ only where the game allows it."""
        if not different.any():
            return
        whose = set() if users is None else {users[place] for place in np.flatnonzero(different)}
        if self.differed and whose != {self._user}:
            raise InvalidParameter("the worlds differ already; ask the same in both.")
        if users is None and different.sum() > 1:
            raise InvalidParameter(f"{different.sum()} rows differ; at most one may.")
        if len(whose) > 1:
            raise InvalidParameter(f"rows of {len(whose)} users differ; those of one may.")
        self.differed = True
        self._user = next(iter(whose), NOBODY)

    @property
    def errors(self) -> tuple[str, ...]:
        """The error that stopped each move, "" where nothing did."""
        return tuple(seen.error for seen in self.view)


def _given(**whose: Any) -> dict[str, Any]:
    return {name: ids for name, ids in whose.items() if ids is not None}


def _ids(users: Any, count: int) -> list[Any] | None:
    """Return ids in the order of the rows, as predictors read them."""
    return None if users is None else check_ids(users, wanted=True, count=count, name="users")


def _heard(move: Callable[[], Any]) -> tuple[Any, tuple[str, ...], str]:
    """Return what a move returns, None if it fails; what is said; and the error."""
    found, stopped = None, ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = move()
        except BaseException as error:  # whatever it is, it can be seen
            if not is_failure(type(error)):
                raise
            stopped = _named(error)
    said = [stopped] if stopped else []
    return found, (*said, *(_named(warning.message) for warning in caught)), stopped


def _named(error: Any) -> str:
    return f"{type(error).__name__}: {error}"
