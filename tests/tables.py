"""The tables of the benchmarks, for tests: scripts, which import what lies beside them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "benchmarks"


def _loaded() -> Any:
    sys.path.insert(0, str(_FOLDER))
    try:
        return importlib.import_module("tables")
    finally:
        sys.path.remove(str(_FOLDER))


_TABLES = _loaded()
adult, credit_default = _TABLES.adult, _TABLES.credit_default
load, TUNING, KEPT_ASIDE = _TABLES.load, _TABLES.TUNING, _TABLES.KEPT_ASIDE
REAL, MADE_UP = _TABLES.REAL, _TABLES.MADE_UP
hospital = MADE_UP["hospital"]
