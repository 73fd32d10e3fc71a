"""The statistical checks of the suite, and the one place that owns their false-alarm rate.

A run of the suite on correct code fails by bad luck with probability at most ``SUITE_RATE``: at
most ``MAX_CHECKS`` checks are made in a run, each at ``alarm_rate()``, and the critical values are
exact for finite samples, so that the rate is a bound and no approximation.

A call that runs several times (in a loop, or in a parametrised test) says how often with
``checks=``; running more often than declared is an error, and ``tests/unit/test_statistics.py``
adds up the declarations over the suite. A call that must reject, because a bug was planted,
declares ``checks=0``: its rejection is no false alarm.

How many cells are combined. A multinomial sample is a chain of binomial ones: given the counts of
the cells before it, each count is binomial in what is left. Each link yields an exact two-sided
p-value that is, given the links before it, no smaller than uniform. So the sum of -2 log p over the
links is stochastically no larger than a chi-square variable with two degrees of freedom a link
(Fisher's combination), and that variable's quantile is a critical value that holds for every sample
size. With two samples the links are hypergeometric, given the totals of the cells.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from cumae.audit import audit
from cumae.audit.results import CANNOT_TELL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cumae.audit import Attack, Audit

    Numbers = Sequence[float] | Sequence[int] | NDArray[Any]

SUITE_RATE = 1e-6
MAX_CHECKS = 240
SMALLEST_CELL = 25  # expected count below which neighbouring cells are pooled; only power needs it

_runs: Counter[tuple[str, int]] = Counter()


def alarm_rate() -> float:
    """Return the probability with which a single check may reject correct code."""
    return SUITE_RATE / MAX_CHECKS


def binomial_rejects(
    successes: int, trials: int, p: float, *, rate: float | None = None, checks: int = 1
) -> bool:
    """Tell whether ``successes`` out of ``trials`` is too few or too many for probability ``p``."""
    _count_run(checks)
    if not 0 <= successes <= trials or not 0 <= p <= 1:
        raise ValueError(f"want 0 <= {successes=} <= {trials=} and 0 <= {p=} <= 1")
    below = stats.binom.cdf(successes, trials, p)
    above = stats.binom.sf(successes - 1, trials, p)
    return bool(2 * min(below, above) <= _rate(rate))


def chi_square_rejects(
    observed_counts: Numbers,
    probabilities: Numbers,
    *,
    rate: float | None = None,
    checks: int = 1,
) -> bool:
    """Tell whether the counts of the cells are implausible under their probabilities.

    The probabilities must add up to 1; add a cell for the rest if the list is cut off. Order the
    cells naturally: neighbours with small expected counts are pooled.
    """
    _count_run(checks)
    counts = _counts(observed_counts)
    p = np.asarray(probabilities, dtype=float)
    if p.shape != counts.shape or not np.all(p >= 0) or abs(p.sum() - 1) > 1e-9:
        raise ValueError("want one probability for each count, adding up to 1")
    if np.any(counts[p == 0] > 0):
        return True  # the impossible happened; pooling would hide it
    trials = int(counts.sum())
    starts = _pool(trials * p)
    counts, p = np.add.reduceat(counts, starts), np.add.reduceat(p, starts)
    counts_left = trials - np.concatenate([[0], np.cumsum(counts)[:-1]])
    p_left = np.cumsum(p[::-1])[::-1]
    link = stats.binom(counts_left[:-1], np.minimum(1, p[:-1] / p_left[:-1]))
    return _combine(link.cdf(counts[:-1]), link.sf(counts[:-1] - 1), _rate(rate))


def two_sample_rejects(
    a_counts: Numbers, b_counts: Numbers, *, rate: float | None = None, checks: int = 1
) -> bool:
    """Tell whether two samples, counted in the same cells, have different distributions."""
    _count_run(checks)
    a, b = _counts(a_counts), _counts(b_counts)
    if a.shape != b.shape:
        raise ValueError("want the same cells for both samples")
    total = a + b
    # The smaller sample's expected counts, given the totals of the cells.
    starts = _pool(total * min(a.sum(), b.sum()) / max(1, total.sum()))
    a, total = np.add.reduceat(a, starts), np.add.reduceat(total, starts)
    a_left = np.cumsum(a[::-1])[::-1]
    total_left = np.cumsum(total[::-1])[::-1]
    link = stats.hypergeom(total_left[:-1], a_left[:-1], total[:-1])
    return _combine(link.cdf(a[:-1]), link.sf(a[:-1] - 1), _rate(rate))


def audited(attack: Attack, *, runs: int, checks: int = 1) -> Audit:
    """Audit an attack so that correct code is called broken with the rate of one check.

    Refuses to run so seldom that even a complete leak would not be found.
    """
    _count_run(checks)
    found = audit(attack, runs=runs, confidence=1 - alarm_rate(), progress=False)
    if found.verdict == CANNOT_TELL:
        raise ValueError(f"{runs} runs cannot break any of {attack.claimed}")
    return found


def _combine(below: NDArray[Any], above: NDArray[Any], rate: float) -> bool:
    """Combine the two tail probabilities of each link by Fisher's method."""
    if len(below) == 0:
        raise ValueError("too few draws: all cells were pooled into one, nothing can be rejected")
    p_values = np.minimum(1, 2 * np.minimum(below, above))
    with np.errstate(divide="ignore"):  # a tail that underflows to 0 rejects
        statistic = -2 * np.log(p_values).sum()
    return bool(statistic >= stats.chi2.isf(rate, 2 * len(p_values)))


def _pool(expected: NDArray[Any]) -> NDArray[np.intp]:
    """Return the first index of each run of neighbours that is expected to be large enough."""
    starts, size = [0], 0.0
    for index, cell in enumerate(expected):
        if size >= SMALLEST_CELL:
            starts.append(index)
            size = 0.0
        size += cell
    if size < SMALLEST_CELL and len(starts) > 1:
        starts.pop()  # the last run stays small: it joins the one before
    return np.array(starts)


def _counts(values: Numbers) -> NDArray[np.int64]:
    given = np.asarray(values)
    counts = given.astype(np.int64)
    if given.ndim != 1 or len(given) < 2 or not np.array_equal(counts, given) or counts.min() < 0:
        raise ValueError("want at least two cells with whole, non-negative counts")
    return counts


def _rate(rate: float | None) -> float:
    return alarm_rate() if rate is None else rate


def _count_run(checks: int) -> None:
    """Refuse to run a call more often than it declares; 0 declares that it must reject."""
    caller = sys._getframe(2)
    site = (caller.f_code.co_filename, caller.f_lineno)
    _runs[site] += 1
    if 0 < checks < _runs[site]:
        raise RuntimeError(f"{site[0]}:{site[1]} runs more often than its checks={checks} declares")
