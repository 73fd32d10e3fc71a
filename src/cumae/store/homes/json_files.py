"""Models and accounts in files of JSON, which are no oracles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cumae.errors import CumaeError, InvalidParameter
from cumae.learners.base import Learner
from cumae.privacy import Budget
from cumae.privacy.account_file import KIND


def written_as_json(path: str | Path, other: CumaeError) -> Any:
    """Return the model or the account in a file of JSON.

    Whoever calls this knows that the file is no database, or that no database can be open here: to
    read it otherwise would end the locks that this process has on it.

    Parameters
    ----------
    path : str or Path
        The file, or an address.
    other : CumaeError
        Why it was not opened as an oracle; raised if it is not there, or holds no JSON.

    Raises
    ------
    InvalidParameter
        If it holds JSON that cumae did not write.
    """
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise other from None
    kind = plain.get("kind") if isinstance(plain, dict) else None
    if kind == KIND:
        return Budget.load(path)
    try:
        if kind == "PrivateClassifier":
            from cumae.planning import PrivateClassifier  # noqa: PLC0415 - takes long to load

            return PrivateClassifier.from_dict(plain)
        return Learner.from_dict(plain)
    except CumaeError as error:
        raise InvalidParameter(f"path={str(path)!r}: {error}") from None
