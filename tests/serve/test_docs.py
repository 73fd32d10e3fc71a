"""What docs/serving.md says, and the files for operators, against what the server does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from cumae.serve import openapi
from cumae.serve.settings import ModelSettings, Settings, from_toml
from tests.oracles import everlasting
from tests.serve.served import InThread

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEXT = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```sh curl\n(.*?)```\n\n```json\n(.*?)```", re.DOTALL)


def test_examples_for_curl_get_the_replies_that_they_show(tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    examples = EXAMPLE.findall(TEXT)
    assert len(examples) == TEXT.count("```sh curl") == 4
    with InThread(tmp_path / "oracle.db") as running:
        for command, told in examples:
            here = command.replace("127.0.0.1:8080", f"127.0.0.1:{running.port}")
            here = here.replace("curl ", "curl --noproxy '*' ")
            run = ["bash", "-euo", "pipefail", "-c", here]
            got = subprocess.run(run, capture_output=True, text=True, check=True).stdout
            assert _values(got) == _values(told)


def _values(text: str) -> list[Any]:
    """Return the JSON values that stand one after the other."""
    found, decoder, text = [], json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found


def test_all_settings_routes_and_statuses_are_told() -> None:
    for kind in (Settings, ModelSettings):
        for one in fields(kind):
            assert one.name == "models" or f"`{one.name}`" in TEXT, one.name
    for path in openapi.description()["paths"]:
        short = path.replace("{name}", "N").replace("{version}", "1")
        short = re.sub(r"/v2/models/N/versions/1(/ready)?$", "/v2/models/N", short)
        if not short.endswith(("/config", "/stats")):
            assert f"`{short}`" in TEXT or f" {short}`" in TEXT, path
    for status in openapi.REASONS:
        assert str(status) in TEXT, status


def test_the_settings_of_the_page_and_of_the_containers_can_be_read(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "serve.toml").write_text(block)
    found = from_toml(str(tmp_path / "serve.toml")).checked()
    assert [one.name for one in found.models] == ["survey", "model"]
    assert found.models[0].tick == 0.01
    inside = from_toml(str(DEPLOY / "serve.toml")).checked()
    assert inside.behind_proxy


@pytest.mark.debian("systemd")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "cumae.service").read_text()
    assert "/opt/cumae/env/bin/cumae serve --config" in unit
    assert re.search(r"^TimeoutStopSec=15min$", unit, re.MULTILINE)
    here = tmp_path / "cumae.service"
    program = Path(sys.executable).with_name("cumae")
    here.write_text(unit.replace("/opt/cumae/env/bin/cumae", str(program)))
    run = ["systemd-analyze", "verify", "--man=no", str(here)]
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    here.write_text(here.read_text().replace("TimeoutStopSec", "TimeoutStopSeconds"))
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "TimeoutStopSeconds" in found.stderr  # it tells mistakes


def tool(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name(name))
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def test_the_dockerfile_has_nothing_to_find(tmp_path: Path) -> None:
    assert tool("hadolint", str(DEPLOY / "Dockerfile")).returncode == 0
    planted = tmp_path / "Dockerfile"
    planted.write_text((DEPLOY / "Dockerfile").read_text() + "RUN sudo cd /tmp\n")
    assert tool("hadolint", str(planted)).returncode == 1
    extras = re.search(r"'\.\[(.*)\]'", planted.read_text())
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras is not None
    assert {"serve", "postgres"} <= set(extras[1].split(",")) <= set(known)


def test_the_compose_file_fits_its_schema_and_the_other_files(tmp_path: Path) -> None:
    schema = ["--builtin-schema", "vendor.compose-spec"]
    text = (DEPLOY / "compose.yaml").read_text()
    assert tool("check-jsonschema", *schema, str(DEPLOY / "compose.yaml")).returncode == 0
    planted = tmp_path / "compose.yaml"
    planted.write_text(text.replace("    ports:", "    prots:"))
    assert tool("check-jsonschema", *schema, str(planted)).returncode == 1
    services = yaml.safe_load(text)["services"]
    config = services["first"]["command"][1]
    assert services["first"] == services["second"]
    assert f"./serve.toml:{config}:ro" in services["first"]["volumes"]
    probe = services["first"]["healthcheck"]["test"][-1]
    assert ":8080/v2/health/ready" in probe
    assert from_toml(str(DEPLOY / "serve.toml")).port == 8_080
    nginx = (DEPLOY / "nginx.conf").read_text()
    assert all(f"server {name}:8080;" in nginx for name in ("first", "second"))


def test_the_probe_of_the_containers_tells_readiness(tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    *_, code = services["first"]["healthcheck"]["test"]
    with InThread(tmp_path / "oracle.db") as running:
        here = code.replace(":8080", f":{running.port}")
        for unwell in (False, True):
            running.house.models["oracle"].unwell = unwell
            found = subprocess.run([sys.executable, "-c", here], capture_output=True, check=False)
            assert (found.returncode != 0) == unwell
