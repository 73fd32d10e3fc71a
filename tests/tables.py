"""The tables of the benchmarks, for tests: benchmarks are scripts, which cannot be imported."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

_PATH = Path(__file__).parents[1] / "benchmarks" / "tables.py"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("tables_of_the_benchmarks", _PATH)
    if spec is None or spec.loader is None:
        raise ImportError(_PATH.name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


_TABLES = _loaded()
adult, credit_default, hospital = _TABLES.adult, _TABLES.credit_default, _TABLES.hospital
load, TUNING, KEPT_ASIDE = _TABLES.load, _TABLES.TUNING, _TABLES.KEPT_ASIDE
REAL, MADE_UP = _TABLES.REAL, _TABLES.MADE_UP
