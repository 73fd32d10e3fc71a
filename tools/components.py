"""The packages that an installed cumae uses, with their licences: a bill of materials, and a check.

``sbom`` writes a bill of materials in the form of CycloneDX 1.6: each package that `pip install
'cumae[all]'` brings, with its version and the hashes of requirements.lock, its licence, and who
needs it. The same lock gives the same file. ``licences`` prints the licence of each package, and
fails for one that is unknown or that could not be used together with Apache 2.0.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
EXTRA = "all"
MOST_LETTERS = 40  # of a licence field: longer ones hold the whole text

# Licences whose packages a user of Apache-2.0 code may install beside it.
FREE = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "HPND", "ISC", "MIT"),
    *("MIT-0", "MIT-CMU", "PSF-2.0", "Zlib", "Apache-2.0 WITH LLVM-exception"),
}
# Copyleft that ends at the package's own files or library: fine for a package that is installed as
# it is, and not for code that is copied into this repository.
OWN_FILES = {"MPL-2.0", "LGPL-3.0-only"}
# Other names for them, in the fields and classifiers of packages.
ALIASES = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
# Packages whose metadata name no licence by a known name; each was read in the package itself.
READ = {"apsw": "any-OSI"}
ANY = "any-OSI"  # "any licence that the Open Source Initiative lists": MIT is one


@dataclass(frozen=True)
class Component:
    """A package that cumae uses.

    Parameters
    ----------
    name : str
        Its canonical name.
    version : str
        Its version.
    licence : str
        An SPDX expression; "" if its metadata name none.
    needs : tuple of str
        Names of the packages that it needs.
    """

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]


def needed(name: str, extras: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield the packages that a package needs here, with the extras that it asks for."""
    for line in metadata.requires(name) or []:
        one = Requirement(line)
        marks = ({"extra": extra} for extra in ("", *extras))
        if one.marker is None or any(one.marker.evaluate(mark) for mark in marks):
            yield canonicalize_name(one.name), set(one.extras)


def licence_of(found: metadata.Distribution) -> str:
    """Return the licence that a package's metadata name; "" if they name none."""
    fields: Any = found.metadata
    if expression := fields.get("License-Expression"):
        return str(expression)
    text = fields.get("License") or ""
    marks = [
        mark.rpartition("::")[2].strip()
        for mark in fields.get_all("Classifier") or []
        if mark.startswith("License ::") and not mark.endswith("OSI Approved")
    ]
    names = [text] if 0 < len(text) <= MOST_LETTERS and "\n" not in text else marks
    return " AND ".join(sorted({ALIASES.get(one, one) for one in names}))


def components(name: str = "cumae", extras: Iterable[str] = (EXTRA,)) -> list[Component]:
    """Return the packages that an installed package uses, itself first, then by name."""
    known: dict[str, set[str]] = {}
    waiting: list[tuple[str, set[str]]] = [(canonicalize_name(name), set(extras))]
    while waiting:
        one, wanted = waiting.pop()
        if one in known and wanted <= known[one]:
            continue
        known[one] = known.get(one, set()) | wanted
        waiting += needed(one, known[one])
    found = []
    for one in sorted(known, key=lambda each: (each != name, each)):
        home = metadata.distribution(one)
        needs = tuple(sorted({each for each, _ in needed(one, known[one])} - {one}))
        found.append(Component(one, home.version, READ.get(one) or licence_of(home), needs))
    return found


def unusable(licence: str) -> str:
    """Return what is wrong with a licence beside Apache 2.0; "" if nothing is.

    Examples
    --------
    >>> unusable("MPL-2.0 AND (Apache-2.0 OR MIT)"), unusable("GPL-3.0-only"), unusable("")
    ('', 'GPL-3.0-only is not in the list', 'no licence is named')
    """
    if not licence:
        return "no licence is named"
    for part in licence.replace("(", "").replace(")", "").split(" AND "):
        choices = part.split(" OR ")
        if not any(one.strip() in {*FREE, *OWN_FILES, ANY} for one in choices):
            return f"{part.strip()} is not in the list"
    return ""


def hashes(lock: str) -> dict[str, list[str]]:
    """Return the hashes of the files of each package in a lock.

    Examples
    --------
    >>> hashes("a-b==1.0 \\\\\\n    --hash=sha256:12 \\\\\\n    --hash=sha256:34\\n")
    {'a-b': ['12', '34']}
    """
    found: dict[str, list[str]] = {}
    name = ""
    for line in lock.splitlines():
        if begins := re.match(r"([\w.-]+)(\[.*\])?==", line):
            name = canonicalize_name(begins[1])
        found.setdefault(name, []).extend(re.findall(r"--hash=sha256:([0-9a-f]+)", line))
    return found


def bill(found: list[Component], locked: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the bill of materials of packages, of which the first one needs all others."""
    refs = {one.name: f"pkg:pypi/{one.name}@{one.version}" for one in found}
    entries: list[dict[str, Any]] = []
    for one in found:
        files = [{"name": "cumae:sha256", "value": each} for each in locked.get(one.name, [])]
        entries.append(
            {
                "type": "library",
                "bom-ref": refs[one.name],
                "name": one.name,
                "version": one.version,
                "purl": refs[one.name],
                "licenses": [_licence_entry(one.licence)],
                **({"properties": files} if files else {}),
            }
        )
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": entries[0]},
        "components": entries[1:],
        "dependencies": [
            {"ref": refs[one.name], "dependsOn": [refs[each] for each in one.needs]}
            for one in found
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {**content, "serialNumber": f"urn:uuid:{number}"}


def _licence_entry(licence: str) -> dict[str, Any]:
    if licence in {*FREE, *OWN_FILES} and " " not in licence:
        return {"license": {"id": licence}}
    if licence == ANY or not licence:
        return {"license": {"name": licence or "unknown"}}
    return {"expression": licence}


def main(words: list[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("sbom", "licences"))
    parser.add_argument("-o", "--out", type=Path, help="the file of the bill of materials")
    given = parser.parse_args(words)
    found = components()
    if given.what == "sbom":
        text = json.dumps(bill(found, hashes(LOCK.read_text(encoding="utf-8"))), indent=1) + "\n"
        if given.out is None:
            sys.stdout.write(text)
        else:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(text, encoding="utf-8")
            print(f"{given.out}: {len(found) - 1} packages that cumae {found[0].version} uses")
        return 0
    wrong = 0
    for one in found:
        trouble = unusable(one.licence)
        wrong += bool(trouble)
        print(f"{one.name} {one.version}: {one.licence}{f'  <- {trouble}' if trouble else ''}")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
