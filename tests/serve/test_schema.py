"""The description of the API: every route is in it, and no reply is that is not described."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from starlette.routing import Route

from cumae.serve import openapi
from cumae.serve.pages.desk import PageEndpoint
from tests.oracles import everlasting
from tests.serve.served import InThread

EXAMPLES = 4  # of each operation and phase
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
CHECKS += ",response_schema_conformance"


def test_every_route_is_described(tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    with InThread(tmp_path / "oracle.db") as running:
        app = running.server.config.app
        assert not isinstance(app, str)
        routes = [one for one in app.routes if isinstance(one, Route)]  # type: ignore[union-attr]
    described = set(openapi.description()["paths"])
    for_programs = {one.path for one in routes if not isinstance(one.endpoint, PageEndpoint)}
    assert for_programs <= described <= {one.path for one in routes}


def test_schemathesis_finds_no_reply_that_is_not_described(tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    with InThread(tmp_path / "oracle.db") as running:
        text = json.dumps(openapi.description()).replace("{name}", "oracle")
        described = json.loads(text.replace("{version}", "1"))
        for item in described["paths"].values():
            item.pop("parameters", None)
        schema = tmp_path / "openapi.json"
        schema.write_text(json.dumps(described))
        tool = str(Path(sys.executable).with_name("schemathesis"))
        url = f"http://127.0.0.1:{running.port}"
        words = [tool, "run", str(schema), "--url", url, "--checks", CHECKS]
        words += ["-n", str(EXAMPLES), "--seed", "1", "--generation-database", "none"]
        environment = {**os.environ, "NO_PROXY": "*"}
        found = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
        )
        assert found.returncode == 0, found.stdout[-4_000:]
        assert running.infer([[0.5]]).status == 200
