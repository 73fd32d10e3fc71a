"""Attacks through the server by somebody who sees more than answers: lengths, headers and counts.

The answer to the query that differs is hidden, as in each game. But whoever asks others, and looks
at metadata, at counts and at the lengths of encrypted replies, sees all of that. It must be the
same in both worlds.
"""

from __future__ import annotations

import math
from typing import Any
from zlib import crc32

from cumae.audit.attacks.everlasting import attack_on_phases
from cumae.audit.attacks.predictors import FEW, alike, replaced
from cumae.audit.game import Game
from cumae.audit.runs import Attack
from cumae.predictors import EverlastingPredictor
from cumae.serve.driver.http import over_http


def unusable_cell(*, folder: str | None = None, **options: Any) -> Attack:
    """Attack a query that cannot be used in one of the worlds, by all that can be seen of it.

    Parameters
    ----------
    folder : str, or None
        Where files are; None for temporary folders.
    **options : object
        Parameters of ``EverlastingPredictor``, except the estimator.
    """
    rows, labels = alike(4 * FEW)

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask(rows, replaced(rows, math.nan))
        seen = [game.published() for _ in range(2)]
        game.ask(rows)
        seen.append(game.published())
        errors = [(one.error, one.said) for one in game.view]
        return float(crc32(repr([seen, errors]).encode()))

    what = "a cell that cannot be used"
    look: dict[str, Any] = {"growth": 1.0, "releases": 0}
    attack = attack_on_phases(what, EverlastingPredictor, (rows, labels), play, options, **look)
    return over_http(attack, folder)
