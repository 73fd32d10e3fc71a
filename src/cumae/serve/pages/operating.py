"""The page for operators: what comes and goes, in public counts, and what keeps an oracle well."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import shutil
from collections import deque
from pathlib import Path

from cumae.claims import claim
from cumae.serve.access import not_allowed
from cumae.serve.app import Reply, Request
from cumae.serve.errors import bad, unknown
from cumae.serve.models import Served
from cumae.serve.pages.desk import PageDesk, moved, wants_html
from cumae.serve.pages.facts import Facts
from cumae.serve.pages.pictures import phases_chart, throughput_chart, times_chart
from cumae.store import backup

MINUTE = 60.0
MOST_MINUTES = 24 * 60
MOST_SAID = 64
PAGE = "/admin"


class OperatingPages:
    """Handlers of the page for operators.

    Parameters
    ----------
    desk : PageDesk
        What all pages share.
    """

    def __init__(self, desk: PageDesk) -> None:
        self._desk, self._server = desk, desk.server
        self._minutes: deque[Facts] = deque(maxlen=MOST_MINUTES)
        self._phases: dict[str, list[Facts]] = {}
        self._rows_before: dict[str, int] = {}
        self._said: dict[str, str] = {}  # what orders did, by the sessions that gave them

    async def watch(self) -> None:
        """Note rows and phases once a minute, beside all requests."""
        while True:
            self.note()
            await asyncio.sleep(MINUTE)

    def note(self) -> None:
        """Note the rows since the last time."""
        minute = int(self._desk.clock() // MINUTE)
        self._minutes.append({"minute": minute, "rows": self._rows_since()})
        self._rows_before = self._rows()
        self._note_phases()

    def _rows(self) -> dict[str, int]:
        return {name: self._server.metrics.rows(name) for name in self._server.house.models}

    def _rows_since(self) -> dict[str, int]:
        """Return the rows of each model in the minute that has not ended."""
        return {name: rows - self._rows_before.get(name, 0) for name, rows in self._rows().items()}

    def _minutes_of(self, seen: list[Served]) -> list[Facts]:
        """Return the rows of each minute, of those models that somebody may see."""
        now = {"minute": int(self._desk.clock() // MINUTE) + 1, "rows": self._rows_since()}
        return [
            {"minute": one["minute"], "rows": sum(one["rows"][served.name] for served in seen)}
            for one in (*self._minutes, now)
        ]

    def _note_phases(self) -> None:
        """Note phases that have begun."""
        minute = int(self._desk.clock() // MINUTE)
        for served in self._server.house.models.values():
            phase = getattr(served.model, "phase_", None) if served.is_oracle else None
            known = self._phases.setdefault(served.name, [])
            if phase is not None and (not known or known[-1]["phase"] != phase):
                answered = served.facts()["answered"]
                known.append(
                    {
                        "phase": phase,
                        "minute": minute,
                        "since": _day(minute * MINUTE),
                        "answers": answered,
                    }
                )

    async def admin(self, request: Request) -> Reply:
        """Tell how the server is."""
        self._note_phases()
        facts = await self._facts(request)
        if not wants_html(request):
            return self._desk.show(request, "", facts)
        charts = [throughput_chart(facts["minutes"]), times_chart(facts["times"])]
        charts += [one for one in [phases_chart(facts["phases"], facts["minutes"])] if one]
        said = self._said_to(request)
        return self._desk.show(request, "admin.html", facts, charts=charts, said=said)

    async def verify(self, request: Request) -> Reply:
        """Walk the ledger of an oracle now."""
        served = await self._ordered(request)
        found = await self._desk.looks.at(served, again=True)
        if found is None:
            raise bad("a published model has no ledger")
        state = "fits" if found["verified"] else f"is in trouble: {found['trouble']}"
        return self._done(request, f"The ledger of {served.name} {state}.")

    async def backup(self, request: Request) -> Reply:
        """Write a backup of an oracle into the folder of the settings; its keys are not in it."""
        served = await self._ordered(request)
        folder = self._server.settings.backups
        if folder is None or not served.is_oracle:
            raise bad("there is no folder for backups: set `backups`, and choose an oracle")
        now = dt.datetime.fromtimestamp(self._desk.clock(), dt.UTC)
        copy = Path(folder) / f"{served.name}-{now:%Y-%m-%d-%H%M%S}.db"
        await asyncio.to_thread(backup, served.settings.path, str(copy))
        return self._done(request, f"A backup was written: {copy.name}. Its keys are not in it.")

    async def revoke(self, request: Request) -> Reply:
        """Revoke a key for ever."""
        given = await self._desk.form(request)
        if request.who.models is not None:  # whose key is for some models, and others may not be
            raise not_allowed()
        keys, name = self._server.door.keys, given.get("key")
        if keys is None or name not in {key.name for key in keys.read()}:
            raise unknown()
        await asyncio.to_thread(keys.revoke, name)
        return self._done(request, f"The key {name} is revoked.")

    def _done(self, request: Request, sentence: str) -> Reply:
        """Lead back to the page, and say there what was done to the one who ordered it."""
        session = self._desk.session(request)
        if session is not None:
            while len(self._said) >= MOST_SAID:
                del self._said[next(iter(self._said))]
            self._said[session.nonce] = sentence
        return moved(PAGE)

    def _said_to(self, request: Request) -> str:
        session = self._desk.session(request)
        return "" if session is None else self._said.pop(session.nonce, "")

    async def _ordered(self, request: Request) -> Served:
        """Return the oracle that an order is about, after its form was checked."""
        given = await self._desk.form(request)
        name = given.get("model")
        if not name:
            raise bad("choose an oracle")
        return self._server.house.find(name, None, request.who)

    async def _facts(self, request: Request) -> Facts:
        server = self._server
        seen = server.seen(request)
        ledgers = {one.name: await self._desk.looks.at(one) for one in seen}
        return {
            "requests": server.metrics.n_requests,
            "rows": {one.name: server.metrics.rows(one.name) for one in seen},
            "internal_errors": server.metrics.internal_errors,
            "ready": server.house.is_ready and not server.stopping,
            "minutes": self._minutes_of(seen),
            "times": _times(server.metrics.times),
            "refusals": refusals(server.metrics.refusals),
            "phases": {one.name: self._phases.get(one.name, []) for one in seen},
            "models": [{**one.facts(), "ledger": ledgers[one.name]} for one in seen],
            "disk": _disk(seen),
            "keys": self._keys(request),
            "backups": server.settings.backups is not None,
        }

    def _keys(self, request: Request) -> list[Facts] | None:
        """Return what is known of all keys, for those who may do everything with all models."""
        keys, who = self._server.door.keys, request.who
        if keys is None or not who.may("admin") or who.models is not None:
            return None
        today = dt.datetime.fromtimestamp(self._desk.clock(), dt.UTC).date()
        return [
            {
                "name": key.name,
                "client": key.client,
                "roles": list(key.roles),
                "models": None if key.models is None else list(key.models),
                "expires": key.expires,
                "rate": key.rate,
                "answers": key.answers,
                "used": self._server.limits.used(key.name),
                "valid": key.is_valid(today),
            }
            for key in keys.read()
        ]


@claim("PAGES")
def refusals(counted: dict[str, int]) -> list[Facts]:
    """Return refusals by their reason: codes, which follow from requests and public counts."""
    return [{"reason": code, "requests": counted[code]} for code in sorted(counted)]


def _times(times: list[tuple[float, int]]) -> list[Facts]:
    """Return coarse buckets of time with their names."""
    found, before = [], 0.0
    for end, requests in times:
        bound = f"{before:g} s or more" if math.isinf(end) else f"up to {end:g} s"
        found.append({"bound": bound, "seconds": _finite(end), "requests": requests})
        before = end
    return found


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def _disk(seen: list[Served]) -> list[Facts]:
    """Return the room that is left where oracles lie in files."""
    folders = {
        Path(one.settings.path).resolve().parent
        for one in seen
        if one.is_oracle and "://" not in one.settings.path
    }
    disks = {folder.stat().st_dev: folder for folder in sorted(folders)}
    found = [shutil.disk_usage(folder) for folder in disks.values()]
    return [{"free": one.free, "total": one.total} for one in found]


def _day(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M")
