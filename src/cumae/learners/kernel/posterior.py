"""Beliefs about the coefficients after the releases, and what is worth measuring next.

Nothing here touches private rows: it is computed from releases, from the reference and from public
numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, softmax

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.learners.kernel.linear import (
    Covariance,
    Solver,
    by_group,
    evidence_of_scales,
    largest,
    root_of,
)
from cumae.learners.kernel.relevance import Relevance, doubts
from cumae.learners.kernel.sums import chances, weights

MOST_DIRECTIONS = 160  # of a release, if there is one score; several scores share about as many
MOST_LINES = 640  # and of the first one, which sees every line
ROUNDS = 2  # of linearising all releases at the mean so far
UPDATES = 3  # of the prior's variances in each of them
FINDS_WAVES = 500.0  # strength from which on waves can be told from noise
TELLS_LITTLE = 100.0  # strength below which no release tells the views apart
BELIEF = 4.0  # coefficients that the first guess of a variance is worth
SMALLEST, LARGEST = 1e-4, 30.0  # variances
HARDLY = 1e-3  # share of a view below which it is left out
SMALLEST_VARIANCE = 1e-9
STEEPER = (1.0, 1.5, 2.0, 3.0, 4.5)  # times as steep as made-up rows say
DOUBTS = 0.3  # usual size of the logarithm of that, before anything is known
FLAT = 1e-6  # variance of a direction, against the largest, below which nothing is measured


@claim("KERNEL")
def most_directions(scores: int, lines: int = 0) -> int:
    """Return how many directions a release has at most, so that inference takes seconds.

    Parameters
    ----------
    scores : int
        Number of scores of a row.
    lines : int
        How many lines there are, if the release is the first one, which is to see all of them.
    """
    most = max(MOST_DIRECTIONS, min(lines, MOST_LINES))
    return max(32, 2 * most // (scores + 1))


@dataclass(frozen=True)
class NoisySum:
    """One noisy sum, with what is needed to predict it from coefficients.

    Parameters
    ----------
    value : array of float
        What was released, in units of rows: a row for each direction, a column for each score.
    noise : float
        Variance of its noise.
    shown : array of float
        Shortened directions of the reference rows.
    chance : array of float
        Chances of the reference rows when it was planned.
    """

    value: Floats
    noise: float
    shown: Floats
    chance: Floats


@dataclass
class View:
    """One belief about how coefficients are spread.

    Parameters
    ----------
    start : array of float
        First guess of the variance of each group.
    relevance : Relevance or None
        What columns have instead of one spread for all.
    """

    start: Floats
    relevance: Relevance | None

    def __post_init__(self) -> None:
        self.variances = self.start.copy()

    def prior(self, groups: Integers) -> Floats:
        """Return the variance of each coefficient, given its group."""
        found = self.variances[groups]
        return found if self.relevance is None else found * self.relevance.factors


@dataclass(frozen=True)
class _Belief:
    """The belief of a view after the releases: mean, logarithm of its evidence, and covariance."""

    mean: Floats
    evidence: float
    spread: Callable[[], Covariance]


@dataclass
class Posterior:
    """Coefficients as far as they are known: a mean, a covariance, and variances of groups.

    Parameters
    ----------
    reference : array of float
        Features of the reference rows.
    groups : array of int
        The group of each feature.
    starts : array of float
        First guesses of the variance of each group: a row for each view of the matter.
    beliefs : array of float
        How much each view is believed at first.
    scores : int
        Number of scores of a row: one for two classes, else one for each class.
    rows : int
        Number of private rows.
    worth : float
        How many rows the reference is worth.
    steps : int
        How many releases there are going to be.
    constant : array of float, or None
        First guess of the constant of each score; 0 if there is none.
    owners : array of int, or None
        The column of each feature, or -1 for those of several. Each view is then taken twice: with
        one spread for all columns, and with one for each.
    steeper : tuple of float
        How many times as steeply sums may follow coefficients as the reference says; the releases
        decide. Made-up rows miss directions along which columns go together. What follows along
        such a direction is found first, and moves sums by more than such rows say.
    """

    reference: Floats
    groups: Integers
    starts: Floats
    beliefs: Floats
    scores: int
    rows: int
    worth: float
    steps: int
    constant: Floats | None = None
    owners: Integers | None = None
    steeper: tuple[float, ...] = (1.0,)
    releases: list[NoisySum] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.views = [View(one, None) for one in self.starts]
        self.trust = np.log(self.beliefs / self.beliefs.sum())
        self.groups_of_all = np.tile(self.groups, self.scores)
        self.lines = int(np.count_nonzero(self.groups == 1))
        if self.owners is not None:
            owners = np.tile(self.owners, self.scores)
            self.views += [View(one, Relevance(owners)) for one in self.starts]
            self.trust = np.tile(self.trust - math.log(2), 2)
        self.shares = np.exp(self.trust)
        self.first = np.zeros((len(self.groups), self.scores))
        if self.constant is not None:
            self.first[0] = self.constant
        self.mean = self.first.copy()
        priors = np.stack([view.prior(self.groups_of_all) for view in self.views])
        self.spread = Covariance.of(self.shares @ priors)
        # Means of the products of features, from which the lengths of directions follow.
        self.squares = self.reference.T @ self.reference / len(self.reference)

    @property
    def covariance(self) -> Floats:
        """The covariance of the coefficients, score by score."""
        return self.spread.dense()

    @property
    def chance(self) -> Floats:
        """Chances of the reference rows by the mean."""
        return chances(self.reference @ self.mean)

    def bend(self) -> Floats:
        """Return by how much the residual of each reference row follows its scores."""
        chance = self.chance
        return np.asarray(weights(chance) * (chance * (1 - chance)).mean(axis=1))

    def design(self, noise: float) -> Floats:
        """Return the directions to measure next: those about which much is unknown.

        Several scores share directions; what is unknown is then a mean over them.

        Parameters
        ----------
        noise : float
            Variance of the noise of the next release.
        """
        n, size, bend = self.rows, len(self.groups), self.bend()
        bent = self.reference * np.sqrt(bend / len(self.reference))[:, None]
        most = most_directions(self.scores, 0 if self.releases else self.lines)
        if size > len(bent):  # what differs between the reference rows is all that is looked at
            known, across = largest(self.spread.between(bent, self.scores), most)
            kept = known > FLAT * known[-1]
            known = known[kept][::-1]
            axes = self.spread.times(bent.T @ across[:, kept][:, ::-1], self.scores)
            axes /= np.sqrt(known)
        else:
            blocks = self.covariance.reshape(self.scores, size, self.scores, size)
            unknown = np.einsum("cicj->ij", blocks) / self.scores
            root = root_of(unknown + SMALLEST_VARIANCE * np.eye(size))
            # A matrix times its own transpose takes half the time of another product, and the
            # products with ``root`` are small.
            known, across = largest(root.T @ (bent.T @ bent) @ root, most)
            kept = known > FLAT * known[-1]  # others vary by rounding alone
            known, axes = known[kept][::-1], root @ across[:, kept][:, ::-1]
        lengths = (axes * (self.squares @ axes)).sum(axis=0) / known
        shares = _water(known, lengths, noise, n, *self._doubts(axes))
        kept = shares > 0
        return np.asarray(axes[:, kept] * np.sqrt(shares[kept] / known[kept]))

    def _doubts(self, axes: Floats) -> tuple[Floats, Floats]:
        """Return how the variances of directions may be larger or smaller than on the mean.

        Where few columns matter, what is unknown about a direction is either much or nothing.

        Parameters
        ----------
        axes : array of float
            The directions.

        Returns
        -------
        array of float
            For each direction, how likely its variance is so many times as large.
        array of float
            So many times.
        """
        nothing = np.ones((axes.shape[1], 1))
        if self.releases:  # from then on, what was found is followed
            return nothing, nothing
        doubting = [
            (share, view.relevance)
            for share, view in zip(self.shares, self.views, strict=True)
            if view.relevance is not None
        ]
        if not doubting:
            return nothing, nothing
        size = len(self.groups)
        parts = axes**2 / np.maximum(self.spread.prior[:size, None], SMALLEST_VARIANCE)
        return doubts(parts / parts.sum(axis=0), doubting)

    def learn(self, release: NoisySum) -> None:
        """Take in one more release.

        Each view moves its variances to what the releases show. How well a view foretold them
        decides how much it is believed, and the coefficients are a mean over all views.
        """
        self.releases.append(release)
        for _ in range(ROUNDS):
            solver = Solver(*self._as_steep(), self.groups_of_all, self.starts.shape[1])
            found = [self._solve(solver, view) for view in self.views]
            self.shares = softmax(self.trust + np.array([one.evidence for one in found]))
            whole = self.shares @ np.stack([one.mean for one in found])
            self.mean = self.first + whole.reshape(self.scores, -1).T
        kept = np.flatnonzero(self.shares > HARDLY)
        shares = self.shares[kept] / self.shares[kept].sum()
        spreads = [found[place].spread() for place in kept]
        self.spread = Covariance.mixture(shares, spreads, [found[one].mean - whole for one in kept])
        if len(self.releases) > 1:  # what is hardly believed any more takes no more time
            self.views = [self.views[place] for place in kept]
            self.trust, self.shares = self.trust[kept], shares

    def _solve(self, solver: Solver, view: View) -> _Belief:
        """Move the variances of a view to what the releases show, and return what it believes."""
        if view.relevance is None:
            for _ in range(UPDATES):
                self._update_variances(view, *solver.by_groups(view.variances))
            solved = solver.solve(view.prior(self.groups_of_all))
            return _Belief(solved.mean, solved.evidence, solved.spread)
        for update in range(UPDATES + 1):
            solved = solver.solve(view.prior(self.groups_of_all))
            tilted = view.relevance.look(solved, view.variances[self.groups_of_all])
            if update < UPDATES:
                groups, count = self.groups_of_all, len(view.variances)
                squares = by_group(groups, solved.mean**2 / view.relevance.factors, count)
                self._update_variances(view, squares, by_group(groups, solved.known(), count))
                view.relevance.move(tilted)
        # Means of columns one by one would overshoot together where two are alike and matter, and
        # the joint mean shrinks a few columns among many too far.
        alone = view.relevance.idle_pairs * (tilted.mean - solved.mean)
        found = partial(view.relevance.spread, solved, tilted)
        return _Belief(solved.mean + alone, tilted.evidence, found)

    def _as_steep(self) -> tuple[Floats, Floats]:
        """Return all releases as linear measurements, as steep as they are likely to be.

        One release alone does not tell steep sums from large coefficients. Later ones do: they
        show how sums moved with the mean.
        """
        slopes, gaps, apart = self._linearised()
        if len(self.steeper) == 1 or len(self.releases) == 1:
            return slopes, gaps
        prior = self.views[int(self.shares.argmax())].prior(self.groups_of_all)
        told = np.array(evidence_of_scales(slopes, gaps, apart, prior, self.steeper))
        told -= (np.log(self.steeper) / DOUBTS) ** 2 / 2
        times = self.steeper[int(told.argmax())]
        return slopes * times, gaps + (times - 1) * apart

    def _linearised(self) -> tuple[Floats, Floats, Floats]:
        """Return all releases as linear measurements with noise of variance 1, at the mean.

        The third part is what of the values is not released, but follows from the reference.
        """
        now = self.chance
        slopes, gaps, parts = [], [], []
        for release in self.releases:
            slope, gap, noise = self._line(release, now)
            root = cholesky(noise, lower=True, check_finite=False)
            slopes.append(solve_triangular(root, slope, lower=True, check_finite=False))
            gaps.append(solve_triangular(root, gap, lower=True, check_finite=False))
            apart = gap - release.value.T.ravel()
            parts.append(solve_triangular(root, apart, lower=True, check_finite=False))
        return np.vstack(slopes), np.concatenate(gaps), np.concatenate(parts)

    def _line(self, release: NoisySum, now: Floats) -> tuple[Floats, Floats, Floats]:
        """Return one release as a linear measurement: slope, value at 0, and noise."""
        n, shown, scores = self.rows, release.shown, self.scores
        share, weight = n / len(shown), weights(release.chance)
        gap = weight[:, None] * (release.chance - now)
        count, size = shown.shape[1], len(self.groups)
        slope = np.empty((scores, count, scores, size))
        noise = np.empty((scores, count, scores, count))
        for one, other in itertools.combinations_with_replacement(range(scores), 2):
            bend = now[:, one] * ((one == other) - now[:, other])  # the same the other way round
            steep = -share * (shown * (weight * bend)[:, None]).T @ self.reference
            scatter = share * self.steps * weight**2 * bend
            scatter += share * (n / self.worth + 1) * gap[:, one] * gap[:, other]
            spread = (shown * scatter[:, None]).T @ shown
            slope[one, :, other] = slope[other, :, one] = steep
            noise[one, :, other] = noise[other, :, one] = spread
        flat = slope.reshape(scores * count, -1)
        whole = noise.reshape(scores * count, -1) + release.noise * np.eye(scores * count)
        explained = share * (shown.T @ gap)
        value = (release.value - explained).T.ravel() + flat @ (self.mean - self.first).T.ravel()
        return flat, value, whole

    def _update_variances(self, view: View, squares: Floats, known: Floats) -> None:
        """Move the variance of each group to what its coefficients show; not of the constant.

        Parameters
        ----------
        view : View
            Whose variances.
        squares, known : array of float
            The sum of the squared coefficients of each group, and how many of them the releases
            have determined.
        """
        total = squares + BELIEF * view.start
        found = total / (np.maximum(known, 0.0) + BELIEF)
        view.variances[1:] = np.clip(found, SMALLEST, LARGEST)[1:]


def constants_of(counts: Floats, noise: float, rows: int, variance: float) -> Floats:
    """Return constants of the scores that noisy counts of classes speak for.

    Parameters
    ----------
    counts : array of float
        Noisy numbers of rows: of the second of two classes, or of each of more.
    noise : float
        Variance of their noise.
    rows : int
        Number of private rows.
    variance : float
        Variance of the log odds of a class before anything is known.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.kernel.posterior import constants_of
    >>> bool(-4.2 < constants_of(np.array([20.0]), 25.0, 1_000, 4.0)[0] < -3.6)
    True
    """
    odds = np.linspace(-12.0, 12.0, 961)
    chance = expit(odds)
    spread = noise + rows * chance * (1 - chance) + SMALLEST_VARIANCE
    off = counts[:, None] - rows * chance
    fit = -(off**2 / spread + np.log(spread) + odds**2 / variance) / 2
    mean = np.asarray(softmax(fit, axis=1) @ odds)
    if len(counts) > 1:  # scores of classes, whose chances add up to 1
        mean = np.log(expit(mean))
        mean -= mean.mean()
    return mean


def waves_matter(strength: float, constant: Floats | None = None) -> float:
    """Return how much the view that waves matter is believed at first, by public numbers.

    Where waves can hardly be distinguished from noise, looking for them costs more than they bring.
    Where rows are so few that nothing stands out, the wider prior has been the better one.

    Parameters
    ----------
    strength : float
        How far all rows together stand out from noise.
    constant : array of float, or None
        Constants of the scores, if they are known: rows of a rare class say less about it.
    """
    if strength < TELLS_LITTLE:
        return 1 - 1e-9
    if constant is not None:
        chance = chances(constant[None])
        strength *= math.sqrt(float(np.mean(4 * chance * (1 - chance))))
    return min(1 / (1 + (FINDS_WAVES / strength) ** 2), 1 - 1e-9)


def _water(
    known: Floats, lengths: Floats, noise: float, rows: int, chances: Floats, times: Floats
) -> Floats:
    """Return how much of the length of a row each direction gets: most where most is unknown.

    What is left unknown afterwards is to be least, on the mean over what may be true.

    Parameters
    ----------
    known : array of float
        Variance of what a row says along each direction.
    lengths : array of float
        Squared lengths of the directions.
    noise : float
        Variance of the noise.
    rows : int
        Number of private rows.
    chances, times : array of float
        For each direction, how likely its variance is so many times as large.
    """
    signal = rows**2 * known[:, None] * times  # what a share adds to the variance of a sum
    worth = chances * noise * signal * known[:, None] * times / lengths[:, None]
    steep = rows + signal

    def shares(level: float) -> Floats:
        """Return where one share more takes off as much as the level says."""
        low, high = np.zeros(len(known)), 1 / lengths
        for _ in range(30):
            middle = (low + high) / 2
            more = (worth / (noise + steep * middle[:, None]) ** 2).sum(axis=1) > level
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return np.where(low > 0, middle, 0.0)

    low, high = -80.0, math.log(float((worth / noise**2).sum(axis=1).max()) + 1e-30)
    for _ in range(40):
        middle = (low + high) / 2
        if float(shares(math.exp(middle)) @ lengths) > 1:
            low = middle
        else:
            high = middle
    found = shares(math.exp(low))
    total = float(found @ lengths)
    if not total > 0:
        found = np.zeros(len(known))
        found[0] = 1 / lengths[0]
        return found
    return found / total
