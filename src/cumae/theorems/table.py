"""The list of all theorems of the four papers that say how many rows are needed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import signature
from types import MappingProxyType
from typing import Any

from cumae.theorems.active import active_rows, boosted_active_rows, transcript_labels
from cumae.theorems.everlasting import paper_rows
from cumae.theorems.generic import generic_rows, sanitizer_rows, threshold_rows
from cumae.theorems.label_boost import (
    agnostic_boosted_rows,
    boosted_rows,
    improper_rows,
    rectangle_rows,
)
from cumae.theorems.public_data import cover_rows, least_public_rows, semi_private_rows
from cumae.theorems.query_release import (
    AgnosticSizes,
    SubSampSizes,
    agnostic_sizes,
    relabelling_rows,
    subsamp_sizes,
    universal_rows,
    unrelabelled_rows,
)
from cumae.theorems.values import READABLE, OrderOf
from cumae.theorems.vc import (
    close_rows,
    consistent_rows,
    learner_rows,
    least_labels,
    log_dichotomies,
    uniform_rows,
)

# Thresholds on 2^20 points, and a base learner that needs 1,000 rows.
TYPICAL: Mapping[str, float] = MappingProxyType(
    {
        "alpha": 0.1,
        "beta": 0.05,
        "epsilon": 1.0,
        "delta": 1e-6,
        "vc": 1,
        "bits": 20,
        "columns": 1,
        "representation": 20,
        "points": 1_000,
        "max_queries": 1_000,
        "best": 0.0,
        "n_base": 1_000,
        "n_rows": 1_000,
        "n_labelled": 100,
        "base_epsilon": 1.0,
    }
)
WIDTH = 100


@dataclass(frozen=True)
class Theorem:
    """What one theorem says about the number of rows.

    Parameters
    ----------
    paper : int from 1 to 4
        Number of the paper.
    name : str
        What the paper calls it, such as ``"Theorem 3.3"``.
    statement : str
        What it says, and for whom.
    formula : str
        The size, in terms of the parameters of ``function``.
    exact : bool
        Whether every constant is printed, in the theorem or in what proves it. Otherwise
        ``function`` returns an ``OrderOf``, or several of them.
    function : callable
        Computes the size.
    instead : mapping from str to float
        Where its example differs from ``TYPICAL``.

    Examples
    --------
    >>> from cumae.theorems import THEOREMS
    >>> first = THEOREMS[0]
    >>> first.citation, first.exact
    ('Theorem 3.3 of paper 1', False)
    >>> print(first.function(alpha=0.1, beta=0.05, epsilon=0.5, vc=1, bits=20).labelled)
    order of 4,700 rows (the paper does not print the constant)
    """

    paper: int
    name: str
    statement: str
    formula: str
    exact: bool
    function: Callable[..., Any]
    instead: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def citation(self) -> str:
        """Its name with the number of the paper."""
        return f"{self.name} of paper {self.paper}"

    @property
    def example(self) -> dict[str, float]:
        """The parameters of the example: the typical ones, apart from ``instead``."""
        names = signature(self.function).parameters
        return {name: {**TYPICAL, **self.instead}[name] for name in names}

    def __str__(self) -> str:
        changed = ", ".join(f"{name} {value:.3g}" for name, value in self.instead.items())
        where = f" ({changed})" if changed else ""
        found = told(self.function(**self.example))
        module = self.function.__module__.removeprefix("cumae.theorems.")
        return (
            f"{self.statement} Size: {'' if self.exact else 'order of '}{self.formula}. "
            f"Example{where}: {found}. `{module}.{self.function.__name__}`"
        )


def told(size: object) -> str:
    """Return a size, or several of them, as a short text.

    Examples
    --------
    >>> from cumae.theorems.table import told
    >>> from cumae.theorems.values import SplitRows
    >>> told(SplitRows(1_000, 20_000)), told(6.9)
    ('1,000 labelled, 20,000 unlabelled', '6.9')
    """
    if isinstance(size, OrderOf):
        return size.short
    if isinstance(size, SubSampSizes | AgnosticSizes):
        return told(size.n_rows)
    if isinstance(size, int):
        return f"{size:,}" if size < READABLE else f"{size:.1e}"
    if isinstance(size, float):
        return f"{size:.2g}"
    return ", ".join(
        f"{told(getattr(size, part.name)).removesuffix(' rows').removesuffix(' points')} "
        f"{part.name}"
        for part in fields(size)  # type: ignore[arg-type]
    )


THEOREMS: tuple[Theorem, ...] = (
    Theorem(
        1,
        "Theorem 3.3",
        "GenericLearner: publishes a concept without delta, with few labels and many rows without "
        "one. Some concept of the class must be right.",
        "vc ln(1/alpha)/(alpha^3 epsilon) + ln(1/beta)/(alpha epsilon) labelled rows, with bits "
        "times the first term for the others",
        exact=False,
        function=generic_rows,
    ),
    Theorem(
        1,
        "Lemma 3.4",
        "Thresholds, published by a fast learner with delta.",
        "1 labelled row and 8^(log* bits) others, apart from alpha, beta, epsilon and delta",
        exact=False,
        function=threshold_rows,
    ),
    Theorem(
        1,
        "Theorem 4.2",
        "IterLabelBoost: makes any private learner work with few labels. Some concept must be "
        "right, and the base must be better than alpha/20 and publish concepts of the class.",
        "(576000/alpha) vc ln(768/(alpha beta)) labelled rows and 90000 n_base others, times "
        "(3 + e)/epsilon below epsilon 1",
        exact=True,
        function=boosted_rows,
    ),
    Theorem(
        1,
        "Theorem 4.4",
        "IterLabelBoost where no concept is right: comes close to the best one.",
        "vc ln(1/(alpha beta))/(alpha^2 epsilon) labelled rows and n_base/epsilon others",
        exact=False,
        function=agnostic_boosted_rows,
    ),
    Theorem(
        1,
        "Corollary 4.5",
        "Boxes, with delta.",
        "columns labelled rows and columns^3 8^(log* bits) others, apart from alpha, beta, epsilon "
        "and delta",
        exact=False,
        function=rectangle_rows,
    ),
    Theorem(
        1,
        "Corollary 4.6",
        "Any class without delta, by rules that need not be in it. What counts is the "
        "representation dimension of the class.",
        "vc labelled rows and representation others, apart from alpha, beta and epsilon",
        exact=False,
        function=improper_rows,
    ),
    Theorem(
        1,
        "Claim 5.6",
        "Active learning: sampling makes a private learner more private, and needs no more labels.",
        "(n_rows/epsilon) (3 + exp(2 base_epsilon)) rows and n_labelled labels, with a delta of "
        "epsilon delta (7 + exp(base_epsilon))/(3 + exp(2 base_epsilon))",
        exact=True,
        function=active_rows,
    ),
    Theorem(
        1,
        "Theorem 5.7",
        "Active learning with IterLabelBoost: the number of labels does not depend on epsilon.",
        "labels as in Theorem 4.2 at epsilon 1; these and 90000 n_base rows, times "
        "(3 + e^2)/epsilon",
        exact=True,
        function=boosted_active_rows,
    ),
    Theorem(
        1,
        "Theorem A.3",
        "Sanitizer: publishes points that answer each count of a class like the rows, without "
        "delta.",
        "bits vc ln(1/alpha)/(alpha^3 epsilon) + ln(1/beta)/(alpha epsilon) rows, and "
        "vc ln(1/alpha)/alpha^2 points",
        exact=False,
        function=sanitizer_rows,
    ),
    Theorem(
        1,
        "Theorem B.2",
        "Sauer's lemma: how many labellings of some points a class has at most, as a natural "
        "logarithm.",
        "vc ln(e points/vc)",
        exact=True,
        function=log_dichotomies,
    ),
    Theorem(
        1,
        "Theorem B.3",
        "Lower bound: labels that every learner needs, private or not.",
        "(vc - 1)/(16 alpha)",
        exact=True,
        function=least_labels,
        instead={"vc": 101},
    ),
    Theorem(
        1,
        "Theorem B.4",
        "Without privacy: a concept that is right on so many rows has an error of alpha at most.",
        "(8/alpha) (vc ln(16/alpha) + ln(2/beta))",
        exact=True,
        function=consistent_rows,
    ),
    Theorem(
        1,
        "Theorem B.5",
        "Without privacy: two concepts that differ on at most alpha/10 of so many rows differ by "
        "less than alpha in general.",
        "(48/alpha) (10 vc ln(48 e/alpha) + ln(5/beta))",
        exact=True,
        function=close_rows,
    ),
    Theorem(
        1,
        "Theorem B.6",
        "Without privacy: so many rows show the error of each concept up to alpha, whatever the "
        "labels are.",
        "(50 vc/alpha^2) ln(1/(alpha beta))",
        exact=True,
        function=uniform_rows,
    ),
    Theorem(
        1,
        "Theorem C.12",
        "Lower bound: labels that an active learner of thresholds needs if it keeps private for "
        "which rows it asks.",
        "exp(-2 epsilon) (1 - 7 beta/3)/(9 alpha) - n delta (1 + exp(-epsilon)), n being n_rows or "
        "(100/alpha^2) ln(1/(alpha beta)) if that is more",
        exact=True,
        function=transcript_labels,
        instead={"alpha": 0.001, "epsilon": 0.1, "delta": 0.0},
    ),
    Theorem(
        2,
        "Theorem 5.1",
        "GenericBBL: answers for ever. The error is 6 alpha at most, with chance 1 - 4 beta. Some "
        "concept must be right. Its promise to those who ask is void (see the errata).",
        "1.1e10 l^2 ln(1/delta) ln(l/(epsilon a b delta))^2 (3 + exp(epsilon + 4))/(a epsilon^2) "
        "with a = alpha/2, b = beta/2 and l the size of Theorem A.2 for a and b",
        exact=True,
        function=paper_rows,
        instead={"alpha": 0.1 / 6, "beta": 0.05 / 4},
    ),
    Theorem(
        2,
        "Theorem A.2",
        "Without privacy: rows for a learner where some concept is right.",
        "(8 vc ln(13/alpha) + 4 ln(2/beta))/alpha",
        exact=True,
        function=learner_rows,
    ),
    Theorem(
        3,
        "Lemma 3",
        "SubSamp: answers max_queries queries with an average error of alpha, where some concept "
        "is right. Constants are those of Algorithm 5.",
        "vc max(1, sqrt(max_queries alpha))/(epsilon alpha), times constants and logarithms",
        exact=True,
        function=subsamp_sizes,
    ),
    Theorem(
        3,
        "Lemma 4",
        "SubSamp where no concept is right: the average error is alpha above three times the best "
        "concept's.",
        "vc max(1, sqrt(max_queries (alpha + best)))/(epsilon alpha^2), apart from logarithms",
        exact=False,
        function=unrelabelled_rows,
        instead={"epsilon": 0.5},
    ),
    Theorem(
        3,
        "Lemma 6",
        "Relabelling: rows for one private draw among all labellings, at epsilon 1. It is as good "
        "as the best fit, up to alpha.",
        "256 (vc + ln(3/beta))/alpha^2",
        exact=True,
        function=relabelling_rows,
    ),
    Theorem(
        3,
        "Theorem 7",
        "AgPrivCl: answers max_queries queries with an average error of alpha above the best "
        "concept's. Constants are those of Algorithm 3 and of Lemma 9.",
        "vc max(1, sqrt(max_queries) alpha^1.5)/(epsilon alpha^2), times constants and logarithms",
        exact=True,
        function=agnostic_sizes,
        instead={"epsilon": 0.5},
    ),
    Theorem(
        3,
        "Theorem 11",
        "UnvPrivCl: answers any number of queries with an average error of alpha above the best "
        "concept's.",
        "the size of Theorem 7 for 32 (vc ln(1/alpha) + ln(1/beta))/alpha queries",
        exact=False,
        function=universal_rows,
        instead={"epsilon": 0.5},
    ),
    Theorem(
        4,
        "Theorem 3.1",
        "SSPP: publishes a concept without delta, with the help of public rows. Its error is alpha "
        "above the best concept's at most.",
        "(vc ln(1/alpha) + ln(1/beta)) max(1/alpha^2, 1/(epsilon alpha)) private rows, and "
        "(vc ln(1/alpha) + ln(1/beta))/alpha public ones",
        exact=False,
        function=semi_private_rows,
    ),
    Theorem(
        4,
        "Lemma 3.3",
        "Public rows whose labellings come within alpha of each concept.",
        "the smallest n with 2 (2 e n/vc)^(2 vc) exp(-alpha n/4) <= beta",
        exact=True,
        function=cover_rows,
    ),
    Theorem(
        4,
        "Theorem 4.1",
        "Lower bound: public rows that a learner with a small delta needs for a class of infinite "
        "Littlestone dimension, such as thresholds on all real numbers.",
        "more than 1/(1600 alpha)",
        exact=True,
        function=least_public_rows,
        instead={"alpha": 0.0001, "beta": 0.04, "epsilon": 0.1},
    ),
    Theorem(
        4,
        "Theorem 4.2",
        "Lower bound: public rows that a learner without delta needs for each class that no such "
        "learner learns without them.",
        "more than 1/(1600 alpha)",
        exact=True,
        function=least_public_rows,
        instead={"alpha": 0.0001, "beta": 0.04, "epsilon": 0.1},
    ),
)


def listing() -> str:
    """Return all theorems as Markdown, in the order of the papers, with their examples.

    Examples
    --------
    >>> from cumae.theorems import listing
    >>> print(listing())
    ## Paper 1
    <BLANKLINE>
    **Theorem 3.3.** GenericLearner: publishes a concept without delta, ...
    """
    parts = []
    for paper in sorted({theorem.paper for theorem in THEOREMS}):
        parts.append(f"## Paper {paper}")
        for theorem in THEOREMS:
            if theorem.paper == paper:
                text = f"**{theorem.name}.** {theorem}"
                parts.append(textwrap.fill(text, WIDTH, break_long_words=False))
    return "\n\n".join(parts)
