"""Attacks on EverlastingPredictor: through answers, phases and words, and each of its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from cumae.audit.attacks.predictors import (
    FEW,
    MARKED,
    SEVERAL,
    UNMARKED,
    Rows,
    alike,
    attack_on,
    mark_a_row,
    ones,
    replaced,
)
from cumae.audit.distinguishers import by_likelihood, by_training
from cumae.audit.game import Game
from cumae.audit.runs import Attack
from cumae.concepts import Threshold
from cumae.predictors import EverlastingPredictor

NOTHING = Threshold(None, above=True)
OUTLIER = 1e9
COUNTERS = ("phase_", "answered_", "remaining_")
UNNAMED = ("epsilon", "delta", "prior", "prior_share", "columns")


def attack_on_phases(
    what: str,
    predictor: Any,
    rows: Rows,
    play: Callable[[Game], Any],
    options: dict[str, Any],
    *,
    size: int = FEW,
    growth: float = 1.0,
    **others: Any,
) -> Attack:
    """Attack what has shards of this size, and name it by the options that matter.

    Parameters
    ----------
    what : str
        What the attack does, in a few words.
    predictor : class
        ``EverlastingPredictor``, or a class derived from it.
    rows : pair of rows and labels
        What one of them is trained on to read its guarantee.
    play : callable from Game to numbers
        The adversary, as in :class:`~cumae.audit.Attack`.
    options : dict from str to object
        Parameters of the predictor, except the estimator.
    size : int of 1 or more
        Rows of a shard.
    growth : float above 0
        Answers of the first phase for each training row.
    **others : object
        Further options of :func:`~cumae.audit.attacks.predictors.attack_on`.
    """
    given = {"shard_size": size, "growth": growth, "prior": False, "delta": 1e-6, **options}
    named = [f"{name}={value}" for name, value in options.items() if name not in UNNAMED]
    name = ", ".join(["EverlastingPredictor", what, *named])
    releases = int(growth * len(rows[0]))
    return attack_on(name, predictor, given, rows, play, **{"releases": releases, **others})


def training_row(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row: mark it, and ask the same query for all of the first phase."""
    rows, growth = alike(8 * FEW), 64
    play = mark_a_row(rows, alike(growth * len(rows[0]))[0])
    return attack_on_phases("a training row", predictor, rows, play, options, growth=growth)


def query(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query: marked, it marks a shard of the next phase, in which all is asked."""
    (rows, labels), growth = alike(4 * FEW), 16
    asked = alike(growth * len(rows))[0]
    n_late = int(options.get("late", 0.0) * len(asked))  # their rows wait for the phase after
    later = alike(growth * (len(asked) - n_late))[0]

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask(asked, replaced(asked))
        return ones(game.ask(later))

    return attack_on_phases("a query", predictor, (rows, labels), play, options, growth=growth)


def capped_query(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query of a client who asks three in four, and may have half of what is kept.

    How many were kept shows in the length of the next phase.
    """
    (rows, labels), growth = alike(4 * FEW), 4
    asked = alike(growth * len(rows))[0]
    later = alike(growth * (len(asked) // 2 + len(asked) // 4))[0]

    def play(game: Game) -> list[float]:
        game.train((rows, labels))
        game.ask(asked, replaced(asked), clients=np.arange(len(asked)) % 4 // 3)
        found = ones(game.ask(later, clients=np.arange(len(later))))
        game.ask(rows[:1], clients=[0])
        return [found, game.published()["phase_"]]

    options = {**options, "client_cap": 0.5}
    look: dict[str, Any] = {"growth": growth, "distinguish": by_training}
    return attack_on_phases("a query", predictor, (rows, labels), play, options, **look)


def user(
    predictor: Any = EverlastingPredictor, *, owns_a_row: bool = False, **options: Any
) -> Attack:
    """Attack a user who asks a quarter of the queries, all of them marked: one is kept.

    They come in four batches, so that whoever forgets ids in between keeps more. If the user owns a
    training row, which is marked as well, no query is kept.
    """
    (rows, labels), growth = alike(4 * FEW), 16
    asked = alike(growth * len(rows))[0]
    owners = np.arange(len(rows))
    the_user = 0 if owns_a_row else len(rows)
    is_user = np.arange(len(asked)) % 4 == 0
    askers = np.where(is_user, the_user, len(rows) + 1 + np.arange(len(asked)))
    marked = np.where(is_user, MARKED, UNMARKED)[:, None]
    kept = int(3 * len(asked) / 4) + (not owns_a_row)
    later = alike(growth * kept)[0]
    strangers = askers.max() + 1 + np.arange(len(later))

    def play(game: Game) -> list[float]:
        other = (replaced(rows), labels) if owns_a_row else None
        game.train((rows, labels), other, users=owners)
        batches = np.array_split(np.arange(len(asked)), 4)
        first = [game.ask(asked[part], marked[part], users=askers[part]) for part in batches]
        return [sum(map(ones, first)), ones(game.ask(later, users=strangers))]

    options = {**options, "user_ids": True}
    what = "a row and all queries of a user" if owns_a_row else "all queries of a user"
    look: dict[str, Any] = {"growth": growth, "distinguish": by_training, "users": owners}
    return attack_on_phases(what, predictor, (rows, labels), play, options, **look)


def fresh_row(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a row without a label: marked, it marks a shard of the next phase."""
    (rows, labels), growth = alike(4 * FEW), 64
    asked = alike((growth - 1) * len(rows))[0]  # what labelling leaves of a phase

    def play(game: Game) -> list[float]:
        game.train((rows, labels))
        game.supply(rows, replaced(rows))
        game.supply(rows)
        game.ask(asked)
        return [ones(game.ask(asked)), ones(game.ask(asked))]

    options = {**options, "fresh": True}
    look: dict[str, Any] = {"growth": growth, "distinguish": by_training}
    return attack_on_phases("an unlabelled row", predictor, (rows, labels), play, options, **look)


def fresh_query(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query where other rows are learnt from, so that it leaves no trace at all."""
    (rows, labels), growth = alike(4 * FEW), 64
    asked = alike((growth - 1) * len(rows))[0]

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.supply(rows)
        game.ask(asked, replaced(asked))
        return ones(game.ask(asked))

    options = {**options, "fresh": True}
    return attack_on_phases("a query", predictor, (rows, labels), play, options, growth=growth)


def labelled_row(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a row that comes later with its label: it marks a shard of the next phase.

    The phase after that is asked, too: nothing of the row may be left there.
    """
    (rows, labels), growth = alike(4 * FEW), 4
    asked = alike(growth * len(rows))[0]
    later = alike(growth * (len(asked) + len(rows)))[0]
    last = alike(growth * len(later))[0]

    def play(game: Game) -> list[float]:
        game.train((rows, labels))
        game.label((rows, labels), (replaced(rows), labels))
        game.ask(asked)
        return [ones(game.ask(later)), ones(game.ask(last))]

    look: dict[str, Any] = {"growth": growth, "distinguish": by_training}
    return attack_on_phases("a labelled row", predictor, (rows, labels), play, options, **look)


def growing(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query by the sizes of growing phases: when they end, and by public counters."""
    rows, labels = alike(32 * FEW)
    first, second = (8 * len(rows)) // 5 + 1, (64 * len(rows)) // 25 + 1

    def play(game: Game) -> list[float]:
        game.train((rows, labels))
        asked = alike(first)[0]
        game.ask(asked, replaced(asked))
        one = game.published()
        game.ask(alike(second)[0])
        two = game.published()
        return [min(float(now[name]), 1e9) for now in (one, two) for name in COUNTERS]

    options = {**options, "growth": "auto", "shard_size": "auto"}
    what, look = "the sizes of phases", by_likelihood
    return attack_on_phases(what, predictor, (rows, labels), play, options, distinguish=look)


def shard_sizes(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row by the size of the shards, which public numbers show."""
    rows, labels = alike(32 * FEW)

    def play(game: Game) -> list[float]:
        game.train((rows, labels), (replaced(rows), labels))
        now = game.published()
        return [float(now["n_shards_"]), float(now["noise_per_vote_"])]

    options = {**options, "growth": "auto", "shard_size": "auto"}
    what, look = "the sizes of shards", by_likelihood
    return attack_on_phases(
        what, predictor, (rows, labels), play, options, distinguish=look, releases=0
    )


def repeated(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query by asking different ones, and the same again in the next phase.

    With the same noise, every answer that changes comes from a vote that changed.
    """
    rows, labels = alike(20 * SEVERAL)
    asked = np.linspace(0.0, 0.4, len(rows))[:, None]

    def play(game: Game) -> float:
        game.train((rows, labels))
        before = game.ask(asked, replaced(asked)).answers[1:]
        after = game.ask(asked[1:]).answers
        return float(sum(old != new for old, new in zip(before, after, strict=True)))

    what = "the same queries in two phases"
    return attack_on_phases(what, predictor, (rows, labels), play, options, size=SEVERAL)


def next_answer(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query whose own answer is clear, by what the next query is answered."""
    rows, labels = alike(60 * FEW)

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask([[UNMARKED]], [[MARKED]])
        return ones(game.ask([[UNMARKED]]))

    return attack_on_phases(
        "the answer after another one's", predictor, (rows, labels), play, options
    )


def end_of_phase(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query by when the phase ends, and by all other public counters."""
    rows, labels = alike(32 * FEW)

    def play(game: Game) -> list[float]:
        game.train((rows, labels))
        game.ask(rows, replaced(rows))
        game.ask(rows[:1])
        public = game.published()
        return [min(float(public[name]), 1e9) for name in COUNTERS]

    what, look = "the end of a phase", by_likelihood
    return attack_on_phases(what, predictor, (rows, labels), play, options, distinguish=look)


def outlier(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row that is far away from all others, where half of them are marked."""
    rows, growth = alike(8 * SEVERAL), 16
    rows[0][::2] = MARKED
    play = mark_a_row(rows, alike(growth * len(rows[0]))[0], OUTLIER, sign=-1)
    return attack_on_phases(
        "an outlier", predictor, rows, play, options, size=SEVERAL, growth=growth
    )


def words(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row by the text of warnings and errors.

    Ordinary, far and broken queries are asked, together and one by one.
    """
    rows, labels = alike(32 * FEW)
    asked = np.array([[0.1], [10.0], [-OUTLIER], [OUTLIER], [np.nan], [np.inf]])

    def play(game: Game) -> float:
        game.train((rows, labels), (replaced(rows, OUTLIER), labels))
        seen = [game.ask(asked), *(game.ask(query[None]) for query in asked)]
        return float(crc32(repr([one.said for one in seen]).encode()))

    what, look = "what is said", by_likelihood
    return attack_on_phases(what, predictor, (rows, labels), play, options, distinguish=look)


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "EverlastingPredictor": (
        training_row,
        query,
        repeated,
        next_answer,
        end_of_phase,
        outlier,
        words,
        partial(repeated, memoize=True),
        partial(query, late=0.25),
        capped_query,
        user,
        partial(user, owns_a_row=True),
        fresh_row,
        fresh_query,
        labelled_row,
        growing,
        shard_sizes,
    ),
}
