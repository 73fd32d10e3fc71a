"""What an answer changes in the state of each predictor: how it is recorded, and done again.

A *record* is what one change adds to a state. Its counts are absolute, so that the last one holds.
What grew is added at the end. So records that follow each other can be merged into one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from cumae.claims import claim
from cumae.errors import StoreFailed
from cumae.mechanisms import BetweenThresholds, NoisyMajority, StabilityTest
from cumae.predictors.bbl.costs import label_draw
from cumae.predictors.bbl.state import BBLState
from cumae.predictors.everlasting.state import EverlastingState
from cumae.predictors.release.answers import BetweenAnswers, answers_from_facts
from cumae.predictors.release.state import AgnosticState, ReleaseState, UniversalState
from cumae.predictors.release.students import Lesson
from cumae.predictors.state import State, objects
from cumae.predictors.waiting import joined
from cumae.privacy.plain_costs import cost_to_dict
from cumae.privacy.validation import plain_number
from cumae.randomness import discrete_laplace
from cumae.storage import to_plain
from cumae.store.homes.home import Blob
from cumae.store.sealed import Seal, arrays_from_bytes, from_bytes

ANSWERED = "answered"  # the kind of a record of answers
BLOCKS = 256  # a crash costs this part of the answers of a phase at most
Record = dict[str, Any]


@claim("STORE")
class Counting(ABC):
    """Knows what changes in one kind of state when answers are given.

    Parameters
    ----------
    state : State
        What changes.
    """

    def __init__(self, state: Any) -> None:
        self.state = state

    # What is live

    @property
    @abstractmethod
    def mechanism(self) -> Any:
        """What adds noise to the answers now; None if what answers was published."""

    @abstractmethod
    def replace_mechanism(self, mechanism: Any) -> None:
        """Let another one answer."""

    @property
    def used(self) -> int:
        """Releases of this phase that are gone."""
        return 0 if self.mechanism is None else int(self.mechanism.asked)

    @property
    def releases(self) -> int:
        """Releases that this phase was calibrated for."""
        return 0 if self.mechanism is None else int(self.mechanism.max_queries)

    @property
    def phase(self) -> int:
        """Number of the phase, from 1."""
        return 1

    @property
    def spare(self) -> int:
        """Releases that a crash may cost; 0 where each one counts."""
        if not isinstance(self.mechanism, NoisyMajority):
            return 0
        return min(self.mechanism.remaining, self.releases // BLOCKS)

    @property
    def each_costs(self) -> bool:
        """Whether each answer is one release; else only those that were looked at are."""
        return isinstance(self.mechanism, NoisyMajority)

    @property
    def cost(self) -> dict[str, Any] | None:
        """What the noise of this phase costs, for the ledger; None if nothing is drawn any more."""
        return None if self.mechanism is None else cost_to_dict(self.mechanism.cost)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """How that becomes what a row pays, as ``cumae.store.bills`` reads it."""
        return []

    # What an answer changes

    def counts(self) -> dict[str, Any]:
        """Return all counters, and the noise of a threshold that is in force."""
        mechanism = self.mechanism
        if isinstance(mechanism, NoisyMajority):  # its facts would throw away noise drawn ahead
            return {"remaining": mechanism.remaining}
        return {"mechanism": mechanism.to_facts()}

    def set_counts(self, counts: dict[str, Any]) -> None:
        """Take over what ``counts`` returned."""
        if "remaining" in counts:
            self.mechanism.remaining = counts["remaining"]
        else:
            facts = counts["mechanism"]
            source = self.state.fitted.source
            if facts["kind"] == BetweenThresholds.__name__:
                self.replace_mechanism(BetweenThresholds.from_facts(facts, source))
            else:
                self.replace_mechanism(answers_from_facts(facts, source))

    def grown(self, ids: tuple[Any, ...], hide: Callable[[Any], bytes]) -> dict[str, Any]:
        """Return what the last answers added to the state, apart from counters.

        Parameters
        ----------
        ids : tuple
            Those of ``Journal.answered``.
        hide : callable
            Turns an id into its HMAC.
        """
        del ids, hide
        return {}

    def grow(self, grown: dict[str, Any]) -> None:
        """Add to the state what ``grown`` returned; counters are those before it."""
        del grown

    @claim("STORE")
    def charge(self, count: int) -> None:
        """Let releases be gone that may have been used, though the file does not know of them.

        Where a threshold has live noise, each of them may have been unclear; and the noise may
        have been used since, so it is drawn anew, at the price of one more unclear answer.
        """
        mechanism = self.mechanism
        if isinstance(mechanism, NoisyMajority):
            mechanism.remaining -= min(count, mechanism.remaining)
            return
        facts = mechanism.to_facts()
        sides = facts.get("sides", facts)  # BetweenAnswers counts queries around it
        inner = mechanism.sides if isinstance(mechanism, BetweenAnswers) else mechanism
        unclear = "unstable_remaining" if isinstance(inner, StabilityTest) else "remaining"
        sides[unclear] = max(0, sides[unclear] - count - 1)
        sides["threshold_noise"] = discrete_laplace(inner.threshold_rate, source=inner.source)
        if isinstance(inner, StabilityTest):
            facts["queries_remaining"] = max(0, facts["queries_remaining"] - count)
        elif isinstance(mechanism, BetweenAnswers):
            facts["asked"] = min(mechanism.max_queries, facts["asked"] + count)
        self.set_counts({"mechanism": facts})

    def hidden(self, hide: Callable[[Any], bytes]) -> Any:
        """Return the state with HMACs in the place of ids that are kept."""
        del hide
        return self.state

    def know_ids(self, hide: Callable[[Any], bytes]) -> None:
        """Let ids that come be compared by their HMACs from now on."""
        del hide


@claim("STORE")
class EverlastingCounting(Counting):
    """Counts for ``EverlastingPredictor``: kept rows, ids of who has one, noisy votes of a memo."""

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

    def know_ids(self, hide: Callable[[Any], bytes]) -> None:
        self.state.admission.known_as = hide


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


@claim("STORE")
def answered_again(counting: Counting, record: Record) -> None:
    """Do again what a record of answers says."""
    counting.grow(record["grown"])
    counting.set_counts(record["counts"])
    counting.state.answered += record["count"]


def merged(records: Sequence[Record]) -> Record:
    """Return one record of answers that does what these do, one after the other."""
    if len(records) == 1:
        return records[0]
    grown: dict[str, Any] = {}
    for name in dict.fromkeys(name for record in records for name in record["grown"]):
        parts = [record["grown"][name] for record in records if name in record["grown"]]
        grown[name] = parts[0] if name == "at" else joined(parts)
    count = sum(record["count"] for record in records)
    return {"count": count, "counts": records[-1]["counts"], "grown": grown}


# How pieces of a state become a state again


@claim("STORE", "REPLICAS")
def rebuilt(seal: Seal, blobs: list[Blob], estimator: Any) -> Counting:
    """Return a state, with its counters, from all of its pieces.

    Parameters
    ----------
    seal : Seal
        Of their epoch.
    blobs : list of Blob
        A snapshot, and what was recorded since.
    estimator : object
        As in ``cumae.open``.
    """
    whole = seal.open(blobs[0].parts, blobs[0].kind, blobs[0].number)
    counting = counting_of(State.from_arrays(arrays_from_bytes(whole), estimator))
    replay(counting, seal, blobs[1:], blobs[0].number)
    return counting


@claim("STORE", "REPLICAS")
def replay(
    counting: Counting, seal: Seal, blobs: list[Blob], before: int
) -> list[tuple[str, int, int, Record]]:
    """Apply to a state what was recorded after the piece with a number; return the records.

    Each comes with its kind, the number before it and its own.
    """
    done = []
    for blob in blobs:
        record = from_bytes(seal.open(blob.parts, blob.kind, blob.number))
        if record.pop("after") != before:
            raise StoreFailed("a part of the file is missing; it was damaged or edited.")
        _apply(counting, blob.kind, record)
        done.append((blob.kind, before, blob.number, record))
        before = blob.number
    return done


def _apply(counting: Counting, kind: str, record: Record) -> None:
    state = counting.state
    if kind == ANSWERED:
        answered_again(counting, record)
    elif kind == "supplied":
        state.waiting.append(record["rows"])
    elif kind == "labelled":
        state.labelled.append((record["rows"], record["weights"]))
        state.admission.seen.update(record["users"].tolist() if "users" in record else [])
    else:
        state.label_requests(record["requests"].tolist(), record["weights"])
