"""Lives of oracles behind the server, and what passes there beside answers."""

from __future__ import annotations

import re
from typing import Any

from cumae.serve.settings import ModelSettings
from tests.observables.lives import Life
from tests.serve.served import Got, InThread

TIMES = re.compile(rb'"at": "[^"]*"')  # of a look at the ledger
LOOKS = ("/models", "/models/oracle", "/models/oracle.json", "/v2/models/oracle")


class ServedLife(Life):
    """One oracle in one world, which is also asked through the server."""

    def served(self, number: int) -> None:
        """Ask through the server, twice with one id, and look at all that it shows."""
        self.one.close()
        model = ModelSettings(str(self.where.address), name="oracle")
        estimators = {"oracle": self.case.given}
        with InThread(model, estimators=estimators) as server:
            self.one = server.house.models["oracle"].model
            for count in (number % 4 + 1, 1):
                self._asks(server, self._body(count))
            for path in LOOKS:
                got = server.ask("GET", path, Accept="application/json")
                self._see_reply(got, TIMES.sub(b"", got.body))
            got = server.ask("GET", "/metrics")
            lines = [one for one in got.body.splitlines() if b"_seconds" not in one]
            timeless = [one for one in got.headers if one[0] != "content-length"]
            self._see_reply(got._replace(headers=timeless), lines)
        self.open()

    def _body(self, count: int) -> dict[str, Any]:
        """Return a request of queries, with the names that the oracle wants."""
        if self.case.public_queries:
            count = int(min(count, self.one.remaining_))
        numbers = range(self.asked, self.asked + count)
        self.asked += count
        rows = [[_cell(cell) for cell in self.world.query(place)] for place in numbers]
        found: dict[str, Any] = {"instances": rows}
        if getattr(self.one, "user_ids", False):
            found["user_ids"] = [f"{self.world.names}{5_000 + place}" for place in numbers]
        if "tell" in self.case.steps:
            found["query_ids"] = [f"{self.world.names}{place}" for place in numbers]
        return found

    def _asks(self, server: InThread, body: dict[str, Any]) -> None:
        name = f"{self.world.names} {self.asked}"
        for more in ({}, {"Idempotency_Key": name}, {"Idempotency_Key": name}):
            got = server.ask("POST", "/v1/models/oracle:predict", body, **more)
            self._see_reply(got, len(got.body))

    def _see_reply(self, got: Got, shown: Any) -> None:
        headers = [one for one in got.headers if one[0] != "date"]
        self.watch.see("a reply", (got.status, headers, shown))


def _cell(cell: Any) -> Any:
    """Return a cell as JSON may hold it."""
    return cell if isinstance(cell, str | int | float) else None
