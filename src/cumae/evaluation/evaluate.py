"""Evaluate a model on public or private test rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.counting.table import (
    Layout,
    NoiseLaw,
    NoisyTables,
    cells_of,
    chosen_noise,
    counted,
    exact_layout,
    planned_layout,
    released_tables,
    table_count,
)
from cumae.data import (
    ParquetRows,
    check_rows,
    check_some_rows,
    class_places,
    labelled_table,
    length_of,
)
from cumae.engines import Pieces, RawBlock, raw_pieces
from cumae.errors import InvalidData, InvalidParameter
from cumae.evaluation.figures import Figures, figures_of
from cumae.evaluation.report import facts_of, lines_of
from cumae.mechanisms import GaussianNoise, LaplaceNoise
from cumae.parameters import check_count, check_flag
from cumae.predictors.base import Predictor
from cumae.privacy import Budget, Guarantee
from cumae.privacy.plans import Plan, promise
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source

ASSUMED = (
    "the model is public, or was paid for before",
    "for tables of one shape, what it gives for a row depends on that row and its place alone",
)
EVERYBODY = "all rows"


@dataclass(frozen=True)
class Evaluation:
    """Figures of a model on test rows; they may be shown to anybody.

    Parameters
    ----------
    overall : Figures
        Figures of all rows.
    groups : dict from a subgroup to Figures
        Figures of each declared subgroup.
    classes : tuple
        The classes of the model.
    rows : int
        The number of test rows.
    trained_on : bool
        Whether these rows trained the model, so that it looks better than it is.
    confidence : float
        Chance that an interval holds the true figure, for each figure by itself.
    guarantee : Guarantee, or None
        The promise to the test rows; None if they are public.
    tables : NoisyTables
        The noisy counts that everything was computed from.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import PrivateLogisticRegression
    >>> from cumae.evaluation import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = (X[:, 0] + rng.normal(0, 0.3, 20_000) > 0).astype(int)
    >>> model = PrivateLogisticRegression(1.0, 1e-6, columns=[(-1, 1)] * 2)
    >>> model = model.fit(X[:10_000], y[:10_000])
    >>> found = evaluate(model, X[10_000:], y[10_000:], epsilon=1.0, trained_on=False)
    >>> 0.8 < found.overall.accuracy.low < found.overall.accuracy.high < 0.9
    True
    >>> found.guarantee.epsilon
    1.0
    """

    overall: Figures
    groups: dict[Any, Figures]
    classes: tuple[Any, ...]
    rows: int
    trained_on: bool
    confidence: float
    guarantee: Guarantee | None
    tables: NoisyTables = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values that JSON can hold."""
        return facts_of(self)

    def plot(self, kind: str = "all", axes: Any = None) -> Any:
        """Draw curves with their intervals, and return the matplotlib figure.

        Parameters
        ----------
        kind : {"all", "roc", "precision_recall", "calibration", "confusion", "groups"}
            The picture.
        axes : matplotlib axes, or None
            Where to draw a single picture; None for a new figure.
        """
        from cumae.evaluation.pictures import draw  # noqa: PLC0415 - few need matplotlib

        return draw(self, kind, axes)

    def __str__(self) -> str:
        return "\n".join(lines_of(self))


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    trained_on: bool,
    epsilon: float | None = None,
    delta: float = 0.0,
    public: bool = False,
    groups: Any = None,
    group_names: Sequence[Any] | None = None,
    bins: int | Sequence[float] | None = None,
    X_public: Any = None,
    threshold: float = 0.5,
    clip: float = 1e-3,
    confidence: float = 0.95,
    spend_answers: bool = False,
    budget: Budget | None = None,
    random_state: int | Source | None = None,
) -> Evaluation:
    """Evaluate a classifier on test rows: figures with intervals that may be shown.

    Public rows cost nothing. Private rows pay ``epsilon``, each time, for all figures together.

    Parameters
    ----------
    model : classifier
        A fitted model with ``classes_``, and ``predict_proba`` or ``predict``. It is published, or
        public; its output for a row must not depend on other rows.
    X, y : table and array-like
        Test rows and their labels. ParquetRows are read in pieces, and may be larger than memory;
        ``y`` may name the column of their labels.
    trained_on : bool
        Whether the model learnt from any of these rows. Then its figures are too good, and no
        interval knows by how much.
    epsilon : float above 0, or None
        What the figures cost each private row.
    delta : float from 0 and below 1
        The chance that the promise may fail. With 0 it is pure; with more, Gaussian noise is taken
        where it is smaller.
    public : bool
        Whether the rows are public: then nothing is paid, nothing is protected, and there is no
        noise. Give this or ``epsilon``.
    groups : array-like, or None
        The subgroup of each row, such as a column of ages in classes.
    group_names : sequence, or None
        All subgroups that there can be; they are declared, and never read from the rows.
    bins : int of 2 or more, or sequence of float, or None
        How many bins of chances private rows are counted in, at most, or the declared edges between
        bins; None for a number that follows from rows and noise. More bins hide less of the order
        of rows, and have more noise together.
    X_public : table, or None
        Public rows without labels: the bins of chances follow what the model gives them.
    threshold : float above 0 and below 1
        Of two classes, the second is the answer if its chance is above. Of more classes, the
        likeliest is the answer.
    clip : float above 0 and below 0.5
        In the log loss chances below count as this, and those above 1 - clip as that.
    confidence : float above 0 and below 1
        Chance that an interval holds the true figure, for each figure by itself.
    spend_answers : bool
        Whether an oracle may be asked. It spends one answer for each row, and only public rows can
        be asked about.
    budget : Budget, or None
        An account that pays for private rows.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Returns
    -------
    Evaluation
        Figures of all rows and of each subgroup, with the promise.

    Raises
    ------
    InvalidParameter
        If a parameter is wrong. Nothing was paid then.
    InvalidData
        If a row, a label or a subgroup cannot be read. Nothing was paid then.
    BudgetExhausted
        If the account does not hold enough, or an oracle has too few answers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cumae.evaluation import evaluate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4_000, 1))
    >>> y = (X[:, 0] + rng.normal(size=4_000) > 0).astype(int)
    >>> model = LogisticRegression().fit(X[:2_000], y[:2_000])
    >>> found = evaluate(model, X[2_000:], y[2_000:], public=True, trained_on=False)
    >>> found.overall.accuracy.low < 0.75 < found.overall.accuracy.high
    True
    """
    check_flag(trained_on, "trained_on")
    if check_flag(public, "public") == (epsilon is not None):
        raise InvalidParameter("give epsilon= for private rows, or public=True for public ones.")
    _check_shares(threshold=threshold, confidence=confidence, clip=clip)
    oracle = _is_oracle(model)
    _check_oracle(oracle, public=public, spend_answers=spend_answers)
    classes = _classes_of(model)
    chances = not oracle and hasattr(model, "predict_proba")
    noise = None
    if epsilon is not None:
        tables = table_count(len(classes), chances=chances)
        noise = chosen_noise(check_epsilon(epsilon), check_delta(delta), tables, random_state)
    X, y = labelled_table(X, y) if isinstance(y, str) else (X, y)
    label = class_places(y, classes, unlabelled=False)
    check_rows(length_of(X), label)
    check_some_rows(label)
    names, group = _groups(groups, group_names, len(label))
    shown = None if X_public is None or not chances else _chances(model, X_public, len(classes))
    counts = (len(label), len(names), len(classes))
    layout = _private_layout(counts, noise, shown, bins, chances=chances, threshold=threshold)
    asked = Asking(model, tuple(classes), chances)
    rows: Any = None
    if layout is None:  # public rows are counted at each of their chances
        output = _outputs(asked, X)
        layout = exact_layout(len(names), len(classes), label, output, threshold)
        rows = group, label, output
    elif isinstance(X, ParquetRows):
        rows = raw_pieces(X, group, label).then(asked)
    else:
        rows = group, label, asked.of(X)
    released, guarantee = _released(layout, rows, noise, epsilon, delta, budget)
    everybody = np.arange(len(names))
    parts = [everybody] if groups is None else [everybody, *everybody[:, None]]
    overall, *each = (figures_of(released, classes, one, confidence, clip) for one in parts)
    by_group = dict(zip(names, each, strict=False))
    return Evaluation(
        overall, by_group, tuple(classes), len(label), trained_on, confidence, guarantee, released
    )


def _private_layout(
    counts: tuple[int, int, int],
    noise: LaplaceNoise | GaussianNoise | None,
    shown: Floats | None,
    bins: int | Sequence[float] | None,
    *,
    chances: bool,
    threshold: float,
) -> Layout | None:
    """Return the layout of private tables, from numbers of rows, subgroups and classes.

    None for public rows. It also refuses bins that are wrong.
    """
    if isinstance(bins, int):
        check_count(bins, "bins", least=2)
    law = NoiseLaw() if noise is None else NoiseLaw.of(noise)
    found = planned_layout(
        *counts, law, chances=chances, threshold=threshold, public=shown, bins=bins
    )
    return None if noise is None else found


@dataclass(frozen=True)
class Asking:
    """A step that replaces rows by the output of a model, after what stands beside them.

    Parameters
    ----------
    model : classifier
        The model.
    classes : tuple
        Its classes.
    chances : bool
        Whether it is asked for chances, and not for answers.
    """

    model: Any
    classes: tuple[Any, ...]
    chances: bool

    def __call__(self, block: RawBlock, *rest: Any) -> tuple[Any, ...]:
        return (*rest, self.of(block.rows))

    def of(self, X: Any) -> NDArray[Any]:
        """Return the chances of rows, or their answers as places among the classes.

        Parameters
        ----------
        X : table
            The rows.
        """
        if self.chances:
            return _chances(self.model, X, len(self.classes))
        return _answers(self.model, X, list(self.classes))


def _outputs(asked: Asking, X: Any) -> NDArray[Any]:
    """Return what a model says of public rows."""
    if not isinstance(X, ParquetRows):
        return asked.of(X)
    found = dict(raw_pieces(X).then(asked).results(_joined))
    return np.concatenate([found[number] for number in sorted(found)])


def _joined(blocks: Iterator[tuple[NDArray[Any]]]) -> NDArray[Any]:
    return np.concatenate([output for (output,) in blocks])


@dataclass(frozen=True)
class Counting:
    """The counts of all tables, one after the other: a sum of whole numbers over rows.

    Parameters
    ----------
    layout : Layout
        The shape of all tables.
    """

    layout: Layout

    @claim("EVAL")
    def __call__(self, group: Integers, label: Integers, output: NDArray[Any]) -> Integers:
        found = counted(self.layout, cells_of(self.layout, group, label, output))
        return np.concatenate([found[name].ravel() for name in self.layout.shapes])

    def tables(self, flat: Integers) -> dict[str, Integers]:
        """Return the tables of a sum of such counts.

        Parameters
        ----------
        flat : array of int
            The sum.
        """
        shapes = self.layout.shapes
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        split = np.split(flat, ends[:-1])
        return {name: part.reshape(shapes[name]) for name, part in zip(shapes, split, strict=True)}


@claim("EVAL")
def _released(
    layout: Layout,
    rows: Pieces | tuple[Integers, Integers, Any],
    noise: LaplaceNoise | GaussianNoise | None,
    epsilon: float | None,
    delta: float,
    budget: Budget | None,
) -> tuple[NoisyTables, Guarantee | None]:
    """Count, pay and release; ``rows`` are subgroups, labels and the output of the model."""
    count = Counting(layout)
    flat = rows.sum(count) if isinstance(rows, Pieces) else count(*rows)
    exact = count.tables(flat)
    n_rows = len(rows) if isinstance(rows, Pieces) else len(rows[1])
    if noise is None or epsilon is None:
        return released_tables(layout, exact, n_rows, None), None
    used = delta if isinstance(noise, GaussianNoise) else 0.0
    plan = Plan(noise.cost, ("EVAL", "NOISE"), "one test row", assumptions=ASSUMED)
    guarantee = promise(plan, epsilon, used, void=noise.source.deterministic)
    if budget is not None:
        budget.spend(noise.cost, delta=used, what="evaluate")
    return released_tables(layout, exact, n_rows, noise), guarantee


def _check_shares(*, threshold: float, confidence: float, clip: float) -> None:
    """Refuse parameters that are out of their range."""
    for name, value, most in (
        ("threshold", threshold, 1.0),
        ("confidence", confidence, 1.0),
        ("clip", clip, 0.5),
    ):
        if not 0 < value < most:
            raise InvalidParameter(f"{name}={value!r} is not between 0 and {most:g}.")


def _is_oracle(model: Any) -> bool:
    """Tell whether a model answers questions and pays for each answer."""
    return isinstance(getattr(model, "model_", model), Predictor)


def _check_oracle(oracle: bool, *, public: bool, spend_answers: bool) -> None:
    """Refuse to ask an oracle about private rows, or without public=True."""
    if oracle and not public:
        raise InvalidParameter(
            "an oracle is evaluated on public rows only: its answers are for those who ask. Give "
            "public=True and public rows."
        )
    if oracle and not check_flag(spend_answers, "spend_answers"):
        raise InvalidParameter(
            "an oracle pays with an answer for each row; give spend_answers=True if it may."
        )


def _classes_of(model: Any) -> list[Any]:
    """Return the classes of a model."""
    if not hasattr(model, "classes_"):
        raise InvalidParameter(f"this {type(model).__name__} has no classes_; fit it first.")
    classes: list[Any] = np.asarray(model.classes_).tolist()
    if len(classes) < 2:
        raise InvalidParameter("the model knows a single class; there is nothing to evaluate.")
    return classes


def _groups(groups: Any, names: Sequence[Any] | None, count: int) -> tuple[list[Any], Integers]:
    """Return the names of subgroups, and the place of each row's subgroup among them."""
    if (groups is None) != (names is None):
        raise InvalidParameter(
            "groups and group_names belong together: give the subgroup of each row, and all "
            "subgroups that there can be."
        )
    if names is None:
        return [EVERYBODY], np.zeros(count, dtype=np.int64)
    listed = list(names)
    if not listed or len(set(listed)) < len(listed):
        raise InvalidParameter(f"group_names={listed!r} must be different names, one or more.")
    try:
        found = class_places(groups, listed, unlabelled=False)
    except InvalidData:
        raise InvalidData(
            f"groups has a row whose subgroup is none of group_names={listed!r}; declare all "
            "subgroups, which are never read from the rows."
        ) from None
    if len(found) != count:
        raise InvalidData(f"y has {count} rows but groups has {len(found)}; give one for each row.")
    return listed, found


def _chances(model: Any, X: Any, n_classes: int) -> Floats:
    """Return the chance of each class for each row."""
    found = np.asarray(model.predict_proba(X), dtype=float)
    if found.ndim != 2 or found.shape[1] != n_classes:
        raise InvalidParameter("predict_proba of the model must give a column for each class.")
    return np.asarray(np.clip(found, 0.0, 1.0))


def _answers(model: Any, X: Any, classes: list[Any]) -> Integers:
    """Return the place of each answer among the classes; one more for an answer that is none."""
    places = {one: place for place, one in enumerate(classes)}
    given = np.asarray(model.predict(X)).tolist()
    return np.array([places.get(one, len(classes)) for one in given], dtype=np.int64)
