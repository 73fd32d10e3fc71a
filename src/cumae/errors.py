"""Every error that cumae raises on purpose.

::

    CumaeError
    ├── InvalidParameter   (also ValueError)    a parameter has a value that makes no sense
    │   └── RequestIdReused                     a request_id was given to another request before
    ├── InvalidData        (also ValueError)    a cell, a row or a shape of the data is unusable
    ├── UnknownCost        (also TypeError)     a privacy cost that nobody has proven
    ├── BudgetExhausted    (also RuntimeError)  the privacy budget does not cover this call
    ├── LiveState          (also TypeError)     a live privacy state must not be duplicated
    ├── MissingPackage     (also ImportError)   an optional package is not installed
    ├── StoreFailed        (also RuntimeError)  a durable oracle cannot be read, written or trusted
    ├── WorkerFailed       (also RuntimeError)  a worker of an engine failed
    └── WorkersLost        (also RuntimeError)  workers of an engine died, and work is missing

and seven warnings: ``TooFewRows``, a fit will work, but drown in noise; ``ConstantAnswers``, it
will work, but is likely to answer every row alike; ``AnswersDrift``, it will work, but its answers
change from phase to phase; ``EveryFitPays``, it will work, but clones of the same estimator are
fitted in a loop, and each fit pays; ``GuaranteeVoid``, it will work, but its guarantee does not
hold, because something around it has read the rows; ``WeakPrivacy``, it will work, but its epsilon
or delta hardly protects anybody; ``VotesIgnored``, it worked, but the estimator that was given has
no say in the answers.

A message says what was wrong, with which value of which parameter, and what to do about
it. Of the data it names a row and a column at most, never a value. Numbers and names that a program
may need stand in fields of the error as well, such as ``error.remaining``; each class lists its
fields. A field is None, or empty, where the message does not name such a thing.
"""

from __future__ import annotations

import contextlib
import numbers
import sys
import warnings
from collections.abc import Sequence
from types import FrameType

LISTED = 10  # names in a message


class CumaeError(Exception):
    """Base of every error that cumae raises on purpose."""


class InvalidParameter(CumaeError, ValueError):
    """A parameter has a value that makes no sense.

    Parameters
    ----------
    message : str
        The sentence for people.
    parameter : str, or None
        Name of the parameter.
    needed_rows : int, or None
        Number of rows with which the same call would be possible.

    Examples
    --------
    >>> from cumae import InvalidParameter, PrivateLogisticRegression
    >>> try:
    ...     PrivateLogisticRegression(epsilon=-1.0).fit([[0.0]], [0])
    ... except InvalidParameter as error:
    ...     print(error.parameter)
    epsilon
    """

    def __init__(
        self, message: str = "", *, parameter: str | None = None, needed_rows: int | None = None
    ) -> None:
        super().__init__(message)
        self.parameter, self.needed_rows = parameter, needed_rows


class RequestIdReused(InvalidParameter):
    """A ``request_id`` was given to another request before; nothing was answered or spent."""


class InvalidData(CumaeError, ValueError):
    """A cell, a row or a shape of the data is unusable; the value itself is never shown.

    Parameters
    ----------
    message : str
        The sentence for people.
    columns : sequence of str
        Names of the columns that the message names; ``"0"`` and so on where they have no names.
    rows : sequence of int
        Numbers of the rows that the message names, counted from 0.
    needed_rows : int, or None
        Number of rows with which the same call would be possible.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import InvalidData, PrivateLogisticRegression
    >>> try:
    ...     PrivateLogisticRegression().fit([[0.5, 0.1], [np.nan, 0.2]], [0, 1])
    ... except InvalidData as error:
    ...     print(error.rows, error.columns)
    (1,) ('0',)
    """

    def __init__(
        self,
        message: str = "",
        *,
        columns: Sequence[str] = (),
        rows: Sequence[int] = (),
        needed_rows: int | None = None,
    ) -> None:
        super().__init__(message)
        self.columns, self.rows = tuple(map(str, columns)), tuple(map(int, rows))
        self.needed_rows = needed_rows


class UnknownCost(CumaeError, TypeError):
    """A privacy cost was asked for that has no proof."""


class BudgetExhausted(CumaeError, RuntimeError):
    """The privacy budget does not cover this call; the message says what can be done.

    A ``Budget`` or a mechanism that refuses has drawn and spent nothing. Where a predictor stops in
    the middle of a batch, ``answered`` is the number of answers that were given and count.

    Parameters
    ----------
    message : str
        The sentence for people.
    remaining : float, or None
        Answers that are left; of a ``Budget``, the epsilon that is left.
    asked : float, or None
        Answers, or epsilon, that the call needed.
    answered : int, or None
        Answers of the batch that were given before it stopped.
    needed_rows : int, or None
        Rows that the next phase needs.

    Examples
    --------
    >>> from cumae import Budget, BudgetExhausted
    >>> from cumae.privacy import Pure
    >>> try:
    ...     Budget(epsilon=1.0, delta=1e-6).spend(Pure(2.0))
    ... except BudgetExhausted as error:
    ...     print(error.remaining, error.asked)
    1.0 2.0
    """

    def __init__(
        self,
        message: str = "",
        *,
        remaining: float | None = None,
        asked: float | None = None,
        answered: int | None = None,
        needed_rows: int | None = None,
    ) -> None:
        super().__init__(message)
        self.remaining, self.asked = remaining, asked
        self.answered, self.needed_rows = answered, needed_rows


class LiveState(CumaeError, TypeError):
    """A live privacy state was about to be copied, pickled or used in a forked process."""


class MissingPackage(CumaeError, ImportError):
    """A package that only some uses need is not installed; the message names the extra for it.

    Parameters
    ----------
    message : str
        The sentence for people.
    name : str, or None
        The package.
    extra : str, or None
        The extra of cumae that installs it: ``pip install 'cumae[extra]'``.
    """

    def __init__(
        self, message: str = "", *, name: str | None = None, extra: str | None = None
    ) -> None:
        super().__init__(message, name=name)
        self.extra = extra


class StoreFailed(CumaeError, RuntimeError):
    """The files of a durable oracle cannot be read, written or trusted; the message says why.

    Nothing leaves after it: answers that could not be recorded are thrown away, and charged.
    """


class WorkerFailed(CumaeError, RuntimeError):
    """A worker of an engine failed, and what it says may show cells."""


class WorkersLost(CumaeError, RuntimeError):
    """Workers of an engine died, and pieces of a table were not worked on."""


class TooFewRows(UserWarning):
    """A warning: with so few rows, the noise that this budget needs hides the answers.

    Parameters
    ----------
    message : str
        The sentence for people.
    needed_rows : int, or None
        Number of rows that would be enough.
    """

    def __init__(self, message: str = "", *, needed_rows: int | None = None) -> None:
        super().__init__(message)
        self.needed_rows = needed_rows


class ConstantAnswers(UserWarning):
    """Every row is likely to get the same answer, because one class is rare or rows are few."""


class AnswersDrift(UserWarning):
    """A warning: each phase learns from noisy answers of the one before, so accuracy may fall."""


class EveryFitPays(UserWarning):
    """Several clones of one estimator are fitted, as in a search, and each fit pays anew."""


class GuaranteeVoid(UserWarning):
    """Something around a fit reads the rows as well, so that the guarantee of the fit is void."""


class WeakPrivacy(UserWarning):
    """The epsilon or the delta that was asked for hardly protects anybody."""


class VotesIgnored(UserWarning):
    """A warning: the published prior answers alone, and the votes of the estimator do not count."""


def shown(value: object) -> str:
    """Return how a message may show a parameter's value: short scalars only, never a table of data.

    Examples
    --------
    >>> from cumae.errors import shown
    >>> shown(-1.0), shown([120, 95])
    ('-1.0', '<list>')
    """
    if value is None or isinstance(value, str | bytes | numbers.Number | bool):
        with contextlib.suppress(ValueError):  # an integer of thousands of digits
            text = repr(value)
            if len(text) <= 60:
                return text
    return f"<{type(value).__name__}>"


def listed(names: Sequence[str]) -> str:
    """Return names for a message, the first ten of them if there are many.

    Examples
    --------
    >>> from cumae.errors import listed
    >>> listed(["age", "income"]), listed(list("abcdefghijkl"))
    ('age, income', 'a, b, c, d, e, f, g, h, i, j and 2 more')
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def warn(message: str | Warning, kind: type[Warning] = UserWarning) -> None:
    """Warn, and name the line from which cumae was called.

    Other libraries may stand between two lines of cumae, so the outermost line of ours counts.
    """
    frame: FrameType | None = sys._getframe(1)
    level = outside = 2  # whoever calls this function
    while frame is not None:
        level += 1
        if str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
            outside = level
        frame = frame.f_back
    warnings.warn(message, kind, stacklevel=outside)
