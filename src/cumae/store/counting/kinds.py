"""What is counted in each kind of state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from cumae.claims import claim
from cumae.codec import to_plain
from cumae.errors import StoreFailed
from cumae.mechanisms import NoisyMajority
from cumae.predictors.bbl.costs import label_draw
from cumae.predictors.bbl.state import BBLState
from cumae.predictors.everlasting.state import EverlastingState
from cumae.predictors.release.state import AgnosticState, ReleaseState, UniversalState
from cumae.predictors.release.students import Lesson
from cumae.predictors.state import State, objects
from cumae.privacy.plain_costs import cost_to_dict
from cumae.privacy.validation import plain_number
from cumae.store.counting.base import Counting


@claim("STORE")
class EverlastingCounting(Counting):
    """Counts for ``EverlastingPredictor``: kept rows, ids of who has one, noisy votes of a memo."""

    protects_queries = True
    state: EverlastingState

    def __init__(self, state: Any) -> None:
        super().__init__(state)
        self._memo = len(state.phase.memo)

    @property
    def mechanism(self) -> NoisyMajority:
        return self.state.phase.majority

    def replace_mechanism(self, mechanism: Any) -> None:
        self.state.phase.majority = mechanism

    @property
    def phase(self) -> int:
        return self.state.phase.number

    @property
    def spare(self) -> int:
        return super().spare if self.state.rows_from.keeps_queries else 0

    def grown(self, ids: tuple[Any, ...], hide: Callable[[Any], bytes]) -> dict[str, Any]:
        state = self.state
        found: dict[str, Any] = {}
        memo = state.phase.memo
        if len(memo) > self._memo:
            new = list(islice(reversed(memo.items()), len(memo) - self._memo))[::-1]
            found["asked"] = objects(key for key, _ in new)
            found["memo"] = np.array([votes for _, votes in new], dtype=np.int64)
            self._memo = len(memo)
        if not state.rows_from.keeps_queries:
            return found
        rows, weights = state.kept[-1]
        found |= {"rows": rows, "weights": weights.copy()}
        users, clients, named = (*ids, None, None, None)[:3]
        if users is not None:
            found["users"] = objects(map(hide, users))
        if clients is not None:
            offered = state.admission.of_client
            known = [one for one in dict.fromkeys(map(hide, clients)) if one in offered]
            found["clients"] = objects(known)
            found["offered"] = np.array([offered[one] for one in known], dtype=np.int64)
        if named is not None:
            names = [name for name, _ in named if name in state.requests]
            found["names"] = objects(names)
            found["places"] = np.array([state.requests[name] for name in names], dtype=np.int64)
        return found

    def grow(self, grown: dict[str, Any]) -> None:
        state = self.state
        if "asked" in grown:
            memo = zip(grown["asked"].tolist(), grown["memo"], strict=True)
            state.phase.memo.update(memo)
            self._memo = len(state.phase.memo)
        if "rows" in grown:
            state.kept.append((grown["rows"], grown["weights"]))
        if "users" in grown:
            state.admission.seen.update(grown["users"].tolist())
        if "clients" in grown:
            counts = zip(grown["clients"].tolist(), grown["offered"].tolist(), strict=True)
            state.admission.of_client |= Counter(dict(counts))  # counts that only grow
        if "names" in grown:
            places = zip(grown["names"].tolist(), grown["places"].tolist(), strict=True)
            state.requests.update(places)

    def hidden(self, hide: Callable[[Any], bytes]) -> Any:
        admission = self.state.admission
        seen = set(map(hide, admission.seen))
        clients = Counter({hide(one): count for one, count in admission.of_client.items()})
        return replace(self.state, admission=replace(admission, seen=seen, of_client=clients))

    def know_ids(self, known_as: Callable[[Any], tuple[bytes, ...]]) -> None:
        self.state.admission.known_as = known_as


@claim("STORE")
class ReleaseCounting(Counting):
    """Counts for ``QueryRelease`` and ``AgnosticQueryRelease``: the mechanism alone."""

    state: ReleaseState

    @property
    def cost(self) -> dict[str, Any] | None:
        offline = self.state.offline
        if offline is None:
            return super().cost
        if offline.rows is None:
            return None
        return cost_to_dict(offline.concept.choose_cost(offline.epsilon))

    @property
    def steps(self) -> list[dict[str, Any]]:
        fitted = self.state.fitted
        if not isinstance(self.state, AgnosticState):
            return []
        shown, stages = fitted.shown, fitted.shown["stages_"]
        found = {
            "n_rows": stages[-1]["rows"],
            "n_sampled": shown["n_sampled_"],
            "epsilon_boost": shown["epsilon_boost_"],
            "epsilon_answers": shown["epsilon_answers_"],
            "delta_answers": stages[0]["delta"],
            "resample": any(stage["name"] == "resampled" for stage in stages),
        }
        return [_relabelled(found, fitted.model)]

    @property
    def mechanism(self) -> Any:
        return None if self.state.voting is None else self.state.voting.answers

    def replace_mechanism(self, mechanism: Any) -> None:
        self.state.need_voting().answers = mechanism

    @property
    def phase(self) -> int:
        offline = self.state.offline
        return 1 if offline is None or offline.rows is not None else 2


@claim("STORE")
class UniversalCounting(Counting):
    """Counts for ``UniversalQueryRelease``: the first stage, and the public lessons of it."""

    state: UniversalState

    @property
    def mechanism(self) -> Any:
        voting = self.state.first.voting
        return None if voting is None else voting.answers

    def replace_mechanism(self, mechanism: Any) -> None:
        if self.state.first.voting is None:
            raise AssertionError("the first stage is over")
        self.state.first.voting.answers = mechanism

    @property
    def used(self) -> int:
        return self.state.first.asked

    @property
    def releases(self) -> int:
        return self.state.first.count

    @property
    def phase(self) -> int:
        return 1 if self.state.published is None else 2

    @property
    def steps(self) -> list[dict[str, Any]]:
        fitted = self.state.fitted
        first, second = fitted.shown["stages_"]
        found = []
        if "n_sampled" in first:
            found.append(_relabelled({**first, "n_rows": first["rows"]}, fitted.model))
        if second["name"] == "hypothesis":
            pays = {name: plain_number(first[name]) for name in ("epsilon", "delta")}
            found.append({"step": "drawn", "after": plain_number(second["epsilon"]), **pays})
        return found

    def counts(self) -> dict[str, Any]:
        return {**super().counts(), "first": self.state.first.asked}

    def set_counts(self, counts: dict[str, Any]) -> None:
        super().set_counts(counts)
        self.state.first.asked = counts.get("first", self.state.first.asked)

    def grown(self, ids: tuple[Any, ...], hide: Callable[[Any], bytes]) -> dict[str, Any]:
        del ids, hide
        lesson = self.state.first.lessons[-1]
        return {"rows": lesson.queries, "weights": lesson.shares}

    def grow(self, grown: dict[str, Any]) -> None:
        if "rows" in grown:
            self.state.first.lessons.append(Lesson(grown["rows"], grown["weights"]))

    def charge(self, count: int) -> None:
        super().charge(count)
        first = self.state.first
        first.asked = min(first.count, first.asked + count)


@claim("STORE")
class BBLCounting(Counting):
    """Counts for ``GenericBBL``: kept rows are those whose places were drawn beforehand."""

    protects_queries = True
    state: BBLState

    def __init__(self, state: Any) -> None:
        super().__init__(state)
        self._asked = state.phase.asked

    @property
    def mechanism(self) -> Any:
        return self.state.phase.votes

    def replace_mechanism(self, mechanism: Any) -> None:
        self.state.phase.votes = mechanism

    @property
    def used(self) -> int:
        return self.state.phase.asked

    @property
    def releases(self) -> int:
        return self.state.phase.sizes.answers

    @property
    def phase(self) -> int:
        return self.state.phase.number

    @property
    def steps(self) -> list[dict[str, Any]]:
        rules, first = self.state.rules, self.phase == 1
        if first:
            draw = rules.given.first_draw(rules.boost, rules.first)
        else:
            draw = label_draw(rules.given.concept, rules.boost, "T", rules.points)
        share = rules.first / rules.given.counts.n_rows if first else rules.query_share
        pays = {"width": draw.width, "shift": draw.shift, "scored": rules.scored, "share": share}
        return [{"step": "entered", **{name: plain_number(pays[name]) for name in pays}}]

    def counts(self) -> dict[str, Any]:
        return {**super().counts(), "asked": self.state.phase.asked}

    def set_counts(self, counts: dict[str, Any]) -> None:
        super().set_counts(counts)
        self.state.phase.asked = counts.get("asked", self.state.phase.asked)
        self._asked = self.state.phase.asked

    def grown(self, ids: tuple[Any, ...], hide: Callable[[Any], bytes]) -> dict[str, Any]:
        del ids, hide
        if self.state.rules.given.fresh:
            return {}
        phase = self.state.phase
        first, last = np.searchsorted(phase.kept.places, [self._asked, phase.asked])
        self._asked = phase.asked
        return {"at": [int(first)], "rows": phase.kept.rows[first:last].copy()}

    def grow(self, grown: dict[str, Any]) -> None:
        if "rows" in grown:
            first = grown["at"][0]
            self.state.phase.kept.rows[first : first + len(grown["rows"])] = grown["rows"]

    def charge(self, count: int) -> None:
        asked = min(self.releases, self.state.phase.asked + count)
        super().charge(count)
        self.state.phase.asked = self._asked = asked


def _relabelled(found: dict[str, Any], concept: Any) -> dict[str, Any]:
    """Return the step by which rows are drawn and labelled before they are split into shards."""
    names = ("n_rows", "n_sampled", "epsilon_boost", "epsilon_answers", "delta_answers")
    pays = {name: plain_number(found[name]) for name in names}
    return {
        "step": "relabelled",
        **pays,
        "resample": found["resample"],
        "concept": to_plain(concept),
    }


KINDS: dict[type[State], type[Counting]] = {
    EverlastingState: EverlastingCounting,
    ReleaseState: ReleaseCounting,
    UniversalState: UniversalCounting,
    BBLState: BBLCounting,
}


def counting_of(state: Any) -> Counting:
    """Return what knows the counters of a state."""
    for kind, found in KINDS.items():
        if isinstance(state, kind):
            return found(state)
    raise StoreFailed(f"a {type(state).__name__} cannot be stored.")
