"""Facts of models for their pages, as JSON holds them.

All of them follow from declarations, public counts, times, and what is published. Each page is a
picture of such facts, and its twin for programs is the facts themselves.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cumae.audit import Audit
from cumae.claims import claim
from cumae.data import Column
from cumae.errors import CumaeError, InvalidParameter, StoreFailed
from cumae.serve.models import Served
from cumae.serve.pages.words import not_covered, plain_promise, protected, protects_asking
from cumae.store import Status, status

FRESH_SECONDS = 60.0  # for which a look at a ledger is shown again
MOST_EFFECTS = 60  # columns whose effects are told
SHOWN_FIGURES = {
    "accuracy": "right answers",
    "commonest": "right answers of always saying {always}",
    "log_loss": "log loss, smaller is better",
    "brier": "Brier score, smaller is better",
}

Facts = dict[str, Any]


class Looks:
    """Looks at the ledgers of oracles, each once in a while, in a thread.

    Parameters
    ----------
    clock : callable
        Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._found: dict[str, tuple[float, Status | str]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def at(self, served: Served, *, again: bool = False) -> Facts | None:
        """Return what the ledger of an oracle says; None for a published model.

        Parameters
        ----------
        served : Served
            The oracle.
        again : bool
            Whether to walk the ledger now, also if that was done a moment ago.
        """
        if not served.is_oracle:
            return None
        async with self._locks.setdefault(served.name, asyncio.Lock()):
            when, found = self._found.get(served.name, (-math.inf, ""))
            if again or self._clock() - when > FRESH_SECONDS:
                when, found = self._clock(), await asyncio.to_thread(_status, served)
                self._found[served.name] = (when, found)
        return _ledger(when, found)


def _status(served: Served) -> Status | str:
    """Return what the ledger says, or in a sentence why it does not fit."""
    try:
        return status(served.settings.path, keys=served.settings.keys)
    except StoreFailed:
        return "the ledger does not fit, or cannot be read; `cumae verify` says more"


@claim("PAGES")
def _ledger(when: float, found: Status | str) -> Facts:
    """Return the public facts about a ledger: public counts and what was declared."""
    at = dt.datetime.fromtimestamp(when, dt.UTC).isoformat(timespec="seconds")
    if isinstance(found, str):
        return {"verified": False, "at": at, "trouble": found}
    totals = found.totals
    return {
        "verified": not found.trouble and not found.unconfirmed,
        "at": at,
        "trouble": found.trouble,
        "entries": found.last.number,
        "unconfirmed_before": found.unconfirmed,
        "epoch": totals.epoch,
        "answers": totals.answers,
        "releases": totals.releases,
        "used": totals.used,
        "charged_without_answer": totals.charged,
        "rollbacks": totals.rollbacks,
        "replicas": found.n_replicas,
        "bytes": found.n_bytes,
        "drift": None if found.drift is None else str(found.drift),
    }


@claim("PAGES")
def card(served: Served) -> Facts:
    """Return what the list of models says of one."""
    promised = served.model.guarantee_
    return {
        **served.facts(),
        "asked_for": "secret models vote" if served.is_oracle else "a published model",
        "promise": plain_promise(promised),
        "protects_asking": protects_asking(promised),
    }


@claim("PAGES")
def page_facts(served: Served, ledger: Facts | None, published: Facts) -> Facts:
    """Return all that the page of a model says.

    Parameters
    ----------
    served : Served
        The model.
    ledger : dict, or None
        What :class:`Looks` found.
    published : dict
        Effects, evaluation and audit, where there are any.
    """
    promised = served.model.guarantee_
    return {
        **card(served),
        "formal": {**promised.to_dict(), "full": promised.full()},
        "protected": protected(promised),
        "not_covered": not_covered(promised, is_oracle=served.is_oracle),
        "dictionary": [entry(column) for column in named(served)],
        "ledger": ledger,
        **published,
    }


def named(served: Served) -> list[Column]:
    """Return the columns of a model, under the names that questions have for them."""
    titles = served.form.titles
    return [
        Column(**{**vars(column), "name": title})
        for column, title in zip(served.columns, titles, strict=True)
    ]


def entry(column: Column) -> Facts:
    """Return what was declared about a column, for people and programs."""
    low, high, step = (*(column.bounds or (None, None)), None)[:3]
    ends: list[Any] = [low, high]
    if column.since is not None and low is not None and high is not None:
        ends = [column.day(end).date().isoformat() for end in (low, high)]
    values = (
        [str(one) for one in column.readable_categories] if column.categories is not None else None
    )
    return {
        "name": column.name,
        "holds": column.kind,
        "lowest": ends[0],
        "highest": ends[1],
        "step": step,
        "values": values,
        "may_be_missing": column.missing,
    }


def published_about(served: Served) -> Facts:
    """Return what was published about a model beside it: its evaluation, and its last audit.

    Raises
    ------
    InvalidParameter
        If a file that the settings name cannot be read.
    """
    settings = served.settings
    return {"evaluation": _evaluation(settings.evaluation), "audit": _audit(settings.audit)}


def effects_of(served: Served) -> list[Facts]:
    """Return what single columns of a published model add; none of secret models."""
    return [] if served.is_oracle else effects_in(served.model)


def effects_in(learner: Any) -> list[Facts]:
    """Return what single columns of a published model add to the log odds, the strongest first.

    There are none where models have no such parts.

    Parameters
    ----------
    learner : object
        The model, fitted.
    """
    if not hasattr(type(learner), "effects_"):  # a PrivateClassifier has the learner that it chose
        learner = getattr(learner, "model_", learner)
    try:
        found = list(getattr(learner, "effects_", []))
    except CumaeError:  # so few rows that trees were fitted
        return []
    return [
        {
            "column": one.columns[0],
            "values": [_plain(value) for value in one.values[0]],
            "log_odds": one.log_odds.tolist(),
            "spread": one.spread.tolist(),
        }
        for one in found
        if len(one.columns) == 1 and one.log_odds.ndim == 1
    ][:MOST_EFFECTS]


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.date().isoformat()
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _evaluation(path: str | None) -> Facts | None:
    """Return figures that ``cumae score --json`` wrote, those that a reader asks for first."""
    if path is None:
        return None
    given = _read(path)
    try:
        always = str(given["overall"]["commonest_class"])
        figures = [
            {"name": name, "words": words.replace("{always}", always), **given["overall"][name]}
            for name, words in SHOWN_FIGURES.items()
            if given["overall"].get(name) is not None
        ]
        groups = [
            {"name": name, **one["accuracy"]} for name, one in given.get("groups", {}).items()
        ]
        return {
            "rows": given["rows"],
            "confidence": given["confidence"],
            "trained_on": given["trained_on"],
            "private": given["guarantee"] is not None,
            "always": always,
            "figures": figures,
            "groups": groups,
        }
    except (KeyError, TypeError, AttributeError):
        raise InvalidParameter(f"{path} is not what `cumae score --json` writes.") from None


def _audit(path: str | None) -> Facts | None:
    """Return attacks that ``cumae audit --json`` wrote, with how much they could have proven."""
    if path is None:
        return None
    given = _read(path)
    try:
        return {
            "date": given["settings"]["date"],
            "attacks": [attack(Audit.from_dict(one)) for one in given["audits"]],
        }
    except (KeyError, TypeError):
        raise InvalidParameter(f"{path} is not what `cumae audit --json` writes.") from None


def attack(found: Audit) -> Facts:
    """Return what an attack showed, all as epsilon."""
    return {
        "name": found.name,
        "planted": found.planted,
        "claimed": _finite(found.claimed.epsilon),
        "proven": _finite(found.as_epsilon),
        "could_have_proven": _finite(found.most_as_epsilon),
        "runs": found.runs,
        "verdict": found.verdict,
        "not_covered": found.not_covered,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _read(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidParameter(f"{path} cannot be read as JSON.") from None
