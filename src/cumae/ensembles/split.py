"""Which rows belong to which shard."""

from __future__ import annotations

from dataclasses import dataclass

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.randomness import Source, integers, permutation


@claim("SHARDS")
@dataclass(frozen=True)
class Split:
    """Which rows belong to which shard, drawn without looking at any.

    A shard is a slice of one permutation of all row numbers, so that no row can be in two of them.
    Sizes differ by one at most, and every row is in a shard.

    Examples
    --------
    >>> from cumae.ensembles.split import Split
    >>> from cumae.randomness import SYSTEM
    >>> split = Split.draw(10, 3, SYSTEM)
    >>> [len(split.places(shard)) for shard in range(3)]
    [3, 3, 4]
    """

    order: Integers
    n_shards: int

    @classmethod
    def draw(cls, n_rows: int, n_shards: int, source: Source) -> Split:
        """Split so many rows at random."""
        check_count(n_shards, "n_shards", least=1)
        if n_shards > n_rows:
            raise InvalidParameter(
                f"n_shards={n_shards!r} for {n_rows} rows: each shard needs rows of its own."
            )
        return cls(permutation(n_rows, source), n_shards)

    def first(self, shard: int) -> int:
        """Return where a shard starts in the order."""
        return shard * len(self.order) // self.n_shards

    def places(self, shard: int) -> Integers:
        """Return the row numbers of a shard."""
        return self.order[self.first(shard) : self.first(shard + 1)]


@claim("SHARDS")
def shard_seeds(n_shards: int, source: Source) -> Integers:
    """Draw a seed for each shard."""
    return integers(2**31 - 1, n_shards, source)
