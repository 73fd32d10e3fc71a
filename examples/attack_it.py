"""Attack a learner of cumae, and a counter with a mistake.

Shows: audit plays a game in two worlds that differ in one row, and tells how much epsilon an
attacker could prove. A promise is false if that is above the claim. Takes about ten seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cumae.audit import Attack, Claimed, Game, audit
from cumae.audit.attacks.learners import generic_label
from cumae.randomness import discrete_laplace


class Careless:
    """Counts rows that are not below a number, and adds the same noise to each answer."""

    def train(self, X: Any, _y: Any) -> None:
        self.rows = np.ravel(X)
        self.noise = discrete_laplace(0.5)

    def ask(self, X: Any) -> list[int]:
        return [int(np.sum(self.rows >= x)) + self.noise for x in np.ravel(X)]

    def published(self) -> None:
        """A predictor publishes nothing."""


def play(game: Game) -> int:
    game.train((np.zeros((10, 1)), [0] * 10), (np.eye(10, 1), [0] * 10))  # one row is 1, not 0
    count, nothing = game.ask([[1.0], [9.0]]).answers
    return int(count - nothing)  # the noise is gone: no row can be as large as 9


def main() -> None:
    print(audit(generic_label(epsilon=1.0), runs=500))
    careless = Attack("Careless, a row", Careless, play, Claimed(epsilon=1.0))
    print(audit(careless, runs=2_000))


if __name__ == "__main__":
    main()
