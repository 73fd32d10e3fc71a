"""The journal of a predictor: records each event before anything of it is seen."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from cumae.errors import InvalidParameter
from cumae.predictors.answering.calls import Call
from cumae.predictors.answering.events import Event
from cumae.predictors.answering.queue import QueuedCall
from cumae.privacy import Guarantee


class Journal:
    """Records the events of a state. This one has nothing to record: all is in memory.

    A durable journal writes them down. The events of one call, between ``begin`` and ``end``, are
    one change, and nothing leaves before ``commit``.
    """

    durable: ClassVar[bool] = False
    used = 0  # releases of the phase that are recorded

    def __init__(self, inside: threading.Lock | None = None) -> None:
        # Held by the call that changes the state, from before ``begin_turn`` on.
        self.inside = threading.Lock() if inside is None else inside

    def promised(self, guarantee: Guarantee) -> Guarantee:
        """Return what is promised if events are recorded here, given what the fit promised."""
        return guarantee

    def check(self) -> None:
        """Refuse if this predictor must not go on: here it always may."""

    def check_copy(self) -> None:
        """Refuse if nobody may get a copy of the state."""
        self.check()

    def begin_turn(self) -> None:
        """Return when nobody else changes the state, also not a replica.

        Whoever calls this holds ``inside``. When it was let go of, ``commit`` ends the turn.
        """
        self.check()

    def end_turn(self) -> None:
        """Commit all that was recorded, and let other replicas go on, if nobody is ``inside``."""

    def known(self, call: QueuedCall) -> tuple[Any, int] | None:
        """Return the answers of an earlier call of the same name; None if there was none.

        Whoever asks is in a turn, and records the answers in the same one.

        Parameters
        ----------
        call : QueuedCall
            What is asked.

        Returns
        -------
        tuple of answers and int, or None
            What was answered, which may leave after ``commit`` of the number.

        Raises
        ------
        RequestIdReused
            If the earlier one asked something else.
        InvalidParameter
            If the id is none, or if nothing is kept for retries.
        InvalidData
            If what is asked cannot be compared with anything.
        """
        if call.call.request_id is not None:
            raise InvalidParameter(
                "request_id needs a durable oracle, which keeps answers for retries; see save_to."
            )
        return None

    def compare(self, call: Call) -> None:
        """Refuse a call whose name an earlier one of another body has; it is in a turn."""

    def begin(self) -> None:
        """Gather the events of one call, in a turn, until ``end`` or ``break_off``."""

    def end(self) -> int:
        """Return the number of the change that was gathered: it may leave after ``commit``."""
        return 0

    def break_off(self) -> None:
        """Commit what was gathered before a call was broken off."""

    def record(self, event: Event) -> None:
        """Record an event; the state is still the one before it."""

    def remember(self, calls: Sequence[QueuedCall]) -> None:
        """Keep the answers of calls that have a name, for retries; ``known`` has seen them."""

    def fail(self, error: BaseException) -> None:
        """Let everything be refused if an event that was broken off may be on the disk."""

    def commit(self, ticket: int) -> None:
        """Return when what ``recorded`` named by a number can not be lost any more."""

    def settled(self) -> None:
        """Return when nothing that was recorded can be lost: what is published may be seen then."""

    def freeze(self) -> None:
        """Gather from now on what must be added to all that was there, when a phase begins."""

    def write_ahead(self, content: bytes, left: int) -> None:
        """Write beside the last answers of a phase what the next one begins with.

        Parameters
        ----------
        content : bytes
            Its models, and what waited when ``freeze`` was called.
        left : int
            How many answers of the phase are left.
        """

    def training(self) -> None:
        """Let nothing of what was recorded be lost from here on: a long training begins."""

    def rotated(self) -> None:
        """Take a new key, where there are keys."""
        raise InvalidParameter("a predictor in memory has no key; see save_to.")

    def close(self) -> None:
        """Let go of what is held outside memory."""
