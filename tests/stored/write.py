"""Writes the oracle in a file by which later versions show that they still read the first format.

    python -m tests.stored.write

Run it only as long as no version was released: after that, files of that format exist elsewhere,
and the one here must stay as it is. Its rows are made up, so that its keys may lie beside it.

The folder ``format_1_ids`` was written in the same way by a version for which fractions of type
``np.float64`` were other ids than the same floats, with ``oracle(folder, user_ids=True,
client_cap=0.005)``. Each of seven new users asked once, as a client of the same id: two fractions
of that type, 1.5, "anna", b"bob", 10**30 and 1e300. No later version can write it again.
The file of format 2 was made in the same way by the last version that had one mark for all lives,
with a checkpoint after four entries.

The folders in ``format_3`` were written by the last version that packed a state as named arrays,
one for each kind of predictor: three queries, five more with ``request_id="one"`` (which
``known.json`` has, with their answers), and one. In ``everlasting`` they have ids of users and
clients, and rows and queries got labels; ``everlasting_fresh`` has supplied rows. The other
folders there have ``known.json`` with counts alone: ``everlasting_memo`` has all ids, a memo and
labels, ``late`` the recipe of a next phase, and ``student``, ``bbl_fresh`` and ``bbl_between``
are what they are called. The same version wrote ``models_format_1.json``, published models with
some rows and answers, and ``account_format_1.json``, an account with two payments.

The folders in ``format_5`` were written by 1.0.0rc1, which wrote the models of the next phase ahead
and nothing else: in ``everlasting_parts`` the phase has not begun yet, and in the others, with ids,
with supplied rows and with neither, it has.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tests.oracles import ROWS, oracle

HERE = Path(__file__).parent / "format_1"


def main() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        path, stored = oracle(Path(folder))
        stored.predict(ROWS[:5])
        answers = stored.predict(ROWS[:20], request_id="one").tolist()
        stored.close()
        shutil.copy(path, HERE / "oracle.sqlite")
        for key in path.with_name(f"{path.name}.keys").iterdir():
            shutil.copy(key, HERE / f"key-{key.name}")
    (HERE / "known.json").write_text(json.dumps({"answers": answers}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
