"""The process that makes the demo's oracle, asks it, and is killed: ``python -m`` runs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cumae.cli.demo import steps


def main(arguments: Sequence[str]) -> None:
    """Make an oracle and ask it; write a line of JSON before and after each batch.

    Parameters
    ----------
    arguments : sequence of str
        The file of the oracle, the numbers of rows and of questions, and epsilon.
    """
    path, rows, questions, epsilon = arguments
    interviews = steps.Interviews.read(int(rows), int(questions))
    oracle = steps.make_oracle(interviews, float(epsilon), Path(path))
    for start in steps.starts(interviews):
        _write(start)
        for batch in steps.ask(oracle, interviews, [start]):
            _write(batch.to_dict())


def _write(plain: object) -> None:
    sys.stdout.write(json.dumps(plain) + "\n")
    sys.stdout.flush()


def said(line: str) -> steps.Batch | int:
    """Read a line that ``main`` wrote."""
    plain = json.loads(line)
    return plain if isinstance(plain, int) else steps.Batch(**plain)


if __name__ == "__main__":
    main(sys.argv[1:])
