"""Channels that once were, or could be: planted again, the law must find each of them.

Each comes with a case, steps and a change of the world by which it is found at once.
"""

from __future__ import annotations

import tempfile
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cumae.codec import to_bytes
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.voters.slots import form_from_facts
from cumae.predictors.answering.events import Answered, LabelsArrived
from cumae.predictors.bbl.phases import Kept
from cumae.predictors.everlasting.phases import OpenPhase
from cumae.predictors.everlasting.predictor import EverlastingPredictor
from cumae.predictors.queries import QueryReader
from cumae.predictors.recipes import Recipe
from cumae.store import writer
from tests.observables.cases import TEXT
from tests.observables.worlds import Change

if TYPE_CHECKING:
    import pytest


def text_answers(patch: pytest.MonkeyPatch) -> None:
    """Write answers for retries as texts, which are as long as they are."""

    def longer(content: Any) -> bytes:
        texts = [TEXT[code] for code in np.asarray(content["answer"]).tolist()]
        return to_bytes({**content, "texts": texts})

    patch.setattr(writer, "to_bytes", longer)


def memo_hits_write_less(patch: pytest.MonkeyPatch) -> None:
    """Record of a memo only what it did not hold."""
    answer: Any = EverlastingPredictor._answers

    def answered(one: Any, part: Any, state: Any, *more: Any) -> Any:
        given = answer(one, part, state, *more)
        known, event = state.phase.memo, given.event
        new = np.array([bytes(key) not in known for key in event.keys])
        return given._replace(event=replace(event, keys=event.keys[new], noisy=event.noisy[new]))

    patch.setattr(EverlastingPredictor, "_answers", answered)


def memo_of_distinct_rows(patch: pytest.MonkeyPatch) -> None:
    """Store a memo with as many entries as rows differ."""
    filled = OpenPhase.memo_to_facts
    patch.setattr(OpenPhase, "memo_to_facts", lambda phase, size: filled(phase, 0 * size))


def compressed_models(patch: pytest.MonkeyPatch) -> None:
    """Store models in as few bytes as they take."""

    def smaller(facts: dict[str, Any]) -> dict[str, Any]:
        if facts.get("slots") is None:
            return facts
        return {**facts, "slots": zlib.compress(facts["slots"].tobytes())}

    def larger(facts: dict[str, Any]) -> dict[str, Any]:
        if "slots" not in facts:
            return facts
        table = np.frombuffer(zlib.decompress(facts["slots"]), dtype=np.uint8)
        width = form_from_facts(facts["form"]).slot_bytes
        return {**facts, "slots": table.reshape(-1, width)}

    _stored_as(patch, Ensemble, smaller, larger)


def constant_shards_without_slots(patch: pytest.MonkeyPatch) -> None:
    """Store slots of those shards alone that have a model."""

    def fewer(facts: dict[str, Any]) -> dict[str, Any]:
        if facts.get("slots") is None:
            return facts
        fixed = facts["slots"][:, :2].copy()
        return {**facts, "slots": facts["slots"][(fixed == 255).all(axis=1)], "fixed": fixed}

    def all_of_them(facts: dict[str, Any]) -> dict[str, Any]:
        if "fixed" not in facts:
            return facts
        fixed = facts["fixed"]
        slots = np.zeros((len(fixed), facts["slots"].shape[1]), dtype=np.uint8)
        slots[:, :2] = fixed
        slots[(fixed == 255).all(axis=1)] = facts["slots"]
        return {**facts, "slots": slots}

    _stored_as(patch, Ensemble, fewer, all_of_them)


def recipes_where_it_is_needed(patch: pytest.MonkeyPatch) -> None:
    """Keep a recipe unless all shards have one label each, so that no model needs it."""
    kept = Recipe.kept_for

    def needed(recipe: Any, ensemble: Any) -> Any:
        return None if ensemble.constant.sum() == ensemble.n_shards else kept(recipe, ensemble)

    patch.setattr(Recipe, "kept_for", needed)


def only_sampled_queries(patch: pytest.MonkeyPatch) -> None:
    """Record those queries of a GenericBBL alone that were drawn to become rows."""

    def among(kept: Any, start: int, table: Any) -> Any:
        return table[kept._drawn(start, len(table)) - start]

    def put(kept: Any, at: int, rows: Any, weights: None) -> None:
        first = int(np.searchsorted(kept.places, at))
        kept.rows[first : first + len(rows)] = rows

    patch.setattr(Kept, "among", among)
    patch.setattr(Kept, "put", put)


def texts_as_long_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """Write records of queries without what fills them up."""
    _rows_stripped(patch, Answered)


def texts_of_rows_as_long_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """Write records of training rows without what fills them up."""
    _rows_stripped(patch, Recipe)


def digits_of_private_numbers(patch: pytest.MonkeyPatch) -> None:
    """Write the sum of what was kept in decimal digits."""

    def more(facts: dict[str, Any]) -> dict[str, Any]:
        return {**facts, "sum": int(np.nansum(facts["rows"]) * 10)} if "rows" in facts else facts

    def less(facts: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in facts.items() if name != "sum"}

    _stored_as(patch, Answered, more, less)


def unusable_queries_leave_no_row(patch: pytest.MonkeyPatch) -> None:
    """Keep the rows of those queries alone that can be used."""
    answer: Any = EverlastingPredictor._answers

    def answered(one: Any, part: Any, state: Any, *more: Any) -> Any:
        given, usable = answer(one, part, state, *more), part.usable
        event = given.event
        kept = {"rows": event.rows[usable], "weights": event.weights[usable]}
        return given._replace(event=replace(event, **kept))

    patch.setattr(EverlastingPredictor, "_answers", answered)


def labels_in_vain_are_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """Record nothing if all queries that get a label were unusable."""
    entry = LabelsArrived.entry
    patch.setattr(
        LabelsArrived, "entry", lambda told: entry(told) if (told.places >= 0).any() else None
    )


def a_file_for_odd_queries(patch: pytest.MonkeyPatch) -> None:
    """Write a temporary file about queries that cannot be used."""

    def write() -> None:
        with tempfile.NamedTemporaryFile():
            pass

    _when_unusable(patch, write)


def a_warning_for_odd_queries(patch: pytest.MonkeyPatch) -> None:
    """Warn about queries that cannot be used."""
    _when_unusable(patch, lambda: warnings.warn("a query was odd", stacklevel=2))


def _when_unusable(patch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    read = QueryReader.private

    def reading(reader: Any, X: Any) -> Any:
        found = read(reader, X)
        if not found[1].all():
            do()
        return found

    patch.setattr(QueryReader, "private", reading)


def _stored_as(
    patch: pytest.MonkeyPatch, kind: Any, write: Callable[..., Any], read: Callable[..., Any]
) -> None:
    """Let a class store something else than its facts, from which these can be had again."""
    to_facts, from_facts = kind.to_facts, kind.from_facts.__func__
    patch.setattr(kind, "to_facts", lambda own: write(to_facts(own)))
    patch.setattr(
        kind, "from_facts", classmethod(lambda cls, facts: from_facts(cls, read(dict(facts))))
    )


def _rows_stripped(patch: pytest.MonkeyPatch, kind: Any) -> None:
    def shorter(facts: dict[str, Any]) -> dict[str, Any]:
        name = next((one for one in ("rows", "records") if one in facts), None)
        if name is None or getattr(facts[name], "dtype", None) != np.uint8:
            return facts
        parts = [row.tobytes().rstrip(b"\0") for row in facts[name]]
        ends = np.cumsum([len(part) for part in parts])
        return {**facts, name: b"".join(parts), "ends": ends, "width": facts[name].shape[1]}

    def longer(facts: dict[str, Any]) -> dict[str, Any]:
        if "ends" not in facts:
            return facts
        name = next(one for one in ("rows", "records") if one in facts)
        content, ends, width = facts[name], facts.pop("ends").tolist(), facts.pop("width")
        rows = [content[one:two].ljust(width, b"\0") for one, two in zip([0, *ends], ends)]  # noqa: B905 - one more
        whole = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, width)
        return {**facts, name: whole}

    _stored_as(patch, kind, shorter, longer)


@dataclass(frozen=True)
class Plant:
    """A channel, and where it is found.

    Parameters
    ----------
    put : callable
        Plants it.
    case : str
        A predictor that has it.
    steps : list of tuples of str and int
        What its life is.
    changes : list of tuples
        By what the other world differs.
    constant : bool
        Whether all labels of the first world are the same.
    """

    put: Callable[[pytest.MonkeyPatch], None]
    case: str
    steps: list[tuple[str, int]]
    changes: list[Change]
    constant: bool = False


ASK, NAMED, RESTART, ROTATE = ("ask", 3), ("named", 3), ("restart", 0), ("rotate", 0)
LABEL: list[Change] = [("labels", 7)]
LOW: list[Change] = [("all", [0.001])]
ODD: list[Change] = [("queries", 1, 0, np.nan)]
PLANTS = [
    Plant(text_answers, "everlasting, text answers", [NAMED], LOW),
    Plant(text_answers, "bbl, text answers", [NAMED], [*LOW, ("seed", 5)]),
    Plant(text_answers, "query, text answers", [NAMED], [("opposite",)]),
    Plant(memo_hits_write_less, "everlasting, memo", [("ask", 0)] * 2, [("repeated", 1, 0)]),
    Plant(memo_of_distinct_rows, "everlasting, memo", [ASK, ROTATE], [("repeated", 1, 0)]),
    Plant(compressed_models, "with tree of depth 3", [], LABEL),
    Plant(compressed_models, "with thresholds", [], [("other", 1)]),
    Plant(compressed_models, "query, trees", [], LABEL),
    Plant(constant_shards_without_slots, "with tree of depth 3", [], LABEL, constant=True),
    Plant(constant_shards_without_slots, "with ridge", [], LABEL, constant=True),
    Plant(recipes_where_it_is_needed, "with neighbours", [], LABEL, constant=True),
    Plant(recipes_where_it_is_needed, "with words", [], LABEL, constant=True),
    Plant(only_sampled_queries, "bbl, a quarter", [("ask", 0)] * 4, [("seed", 5)]),
    Plant(texts_as_long_as_they_are, "with words", [ASK], [("queries", 1, 1, "HIV")]),
    Plant(texts_of_rows_as_long_as_they_are, "with words", [], [("rows", 1, 1, "HIV")]),
    Plant(digits_of_private_numbers, "everlasting", [ASK], [("queries", 1, 0, 1e9)]),
    Plant(unusable_queries_leave_no_row, "everlasting", [ASK], ODD),
    Plant(
        labels_in_vain_are_not_recorded,
        "everlasting, labels",
        [ASK, ("tell", 0)],
        [("queries", 0, 0, np.nan)],
    ),
    Plant(a_file_for_odd_queries, "everlasting", [ASK], ODD),
    Plant(a_warning_for_odd_queries, "everlasting", [ASK], ODD),
]
