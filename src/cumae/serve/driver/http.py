"""An oracle behind the server, which is stopped and started in the middle of every batch."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cumae.audit.runs import Attack
from cumae.serve.errors import Refused
from cumae.serve.models import House
from cumae.serve.running import bound, server_of
from cumae.serve.settings import ModelSettings, Settings
from cumae.store.driver import OracleInFile

SECONDS = 120
COUNTS = "/metrics"
LOOKED_AT = ("/models/oracle", "/models", "/v2/models/oracle")


class OracleOverHttp:
    """Drives a predictor behind a server on this machine, as any client would.

    Parameters
    ----------
    make : callable
        Returns a new driver of a predictor in this process, not fitted.
    folder : str, or None
        Where the file is; None for a temporary folder.

    Attributes
    ----------
    sights : list
        What can be seen of all replies without reading them: addresses, statuses, headers and
        lengths.
    """

    def __init__(self, make: Callable[[], Any], folder: str | None = None) -> None:
        self._file = OracleInFile(make, folder)
        self.sights: list[Any] = []
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._port = 0

    @property
    def estimator(self) -> Any:
        """The predictor that was fitted."""
        return self._file.estimator

    def train(self, X: Any, y: Any, **whose: Any) -> None:
        """Fit it, save it, and serve it."""
        self._stop()
        self._file.train(X, y, **whose)
        self._file.estimator.close()
        self._start()

    def ask(self, X: Any, *, users: Any = None) -> Any:
        """Return answers: half of them before a restart of the server, the others after it."""
        rows = X.to_dict("records") if isinstance(X, pd.DataFrame) else np.asarray(X).tolist()
        middle = len(rows) // 2
        answers: list[Any] = []
        for part in (slice(0, middle), slice(middle, None)):
            if part.start:
                self._stop()
                self._start()
            if rows[part]:
                given = {"instances": rows[part]}
                if users is not None:
                    given["user_ids"] = np.asarray(users)[part].tolist()
                found = self._said("POST", "/v1/models/oracle:predict", given)
                answers += found["predictions"]
        return np.array(answers)

    def published(self) -> dict[str, Any]:
        """Return what everybody may see: facts, inputs, counts, and all replies from outside."""
        found = {path: json.loads(self._body("GET", path)) for path in LOOKED_AT}
        found["/models/oracle"]["ledger"].pop("at")  # when it was looked at
        counts = self._body("GET", COUNTS).decode()
        # How long requests took is a matter of time, which is no part of the game.
        found[COUNTS] = [line for line in counts.splitlines() if "_seconds" not in line]
        return {**found, "replies": list(self.sights)}

    def _said(self, method: str, path: str, given: Any = None) -> Any:
        """Return what the server says; raise what it refuses."""
        return json.loads(self._body(method, path, given))

    def _body(self, method: str, path: str, given: Any = None) -> bytes:
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        try:
            body = None if given is None else json.dumps(given).encode()
            line.request(method, path, body)
            reply = line.getresponse()
            content = reply.read()
        finally:
            line.close()
        if path != COUNTS:  # among which are times
            headers = [one for one in reply.getheaders() if one[0].lower() != "date"]
            self.sights.append([path, reply.status, headers, len(content)])
        if reply.status != http.client.OK:
            refused = json.loads(content)
            raise Refused(reply.status, refused["code"], refused["error"])
        return content

    def _start(self) -> None:
        model = ModelSettings(str(self._file.path), name="oracle")
        settings = Settings(models=(model,), port=0).checked()
        listening = bound(settings)
        self._port = listening.getsockname()[1]
        given = self.estimator.get_params(deep=False)
        named = given.get("estimator")
        own = {"oracle": given["concept_class"] if named is None else named}
        self._server = server_of(settings, House(settings.models, estimators=own), {})
        sockets = {"sockets": [listening]}
        self._thread = threading.Thread(target=self._server.run, kwargs=sockets, daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)

    def _stop(self) -> None:
        """Stop the server, which closes the oracle."""
        if self._thread is not None:
            self._server.should_exit = True
            self._thread.join(SECONDS)
            self._thread = None

    def close(self) -> None:
        """Stop the server, and remove its files."""
        self._stop()
        self._file.close()

    def __del__(self) -> None:
        self.close()


def over_http(attack: Attack, folder: str | None = None) -> Attack:
    """Return the same attack, played through a server that is started again in the middle.

    Parameters
    ----------
    attack : Attack
        One on a predictor in this process.
    folder : str, or None
        Where files are; None for temporary folders.
    """
    make = partial(OracleOverHttp, attack.make, folder)
    return replace(attack, name=f"{attack.name}, over HTTP", make=make)
