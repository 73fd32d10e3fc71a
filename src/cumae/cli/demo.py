"""``cumae demo``: publish a model of the bundled survey, and answer questions about it for ever."""

from __future__ import annotations

import math
import textwrap
import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

if TYPE_CHECKING:
    from cumae import EverlastingPredictor

QUESTIONS = 100_000
BATCH = 10_000
DELTA = 1e-6
# Two of five rows ask: a split that involves no chance and looks at no row.
GROUPS, ASKING = 5, 2


def demo(
    epsilon: Annotated[
        float, typer.Option(min=0.01, help="Privacy budget: smaller protects more.")
    ] = 1.0,
) -> None:
    """Publish a model of a health survey, and answer 100,000 questions by an everlasting oracle.

    Who has high blood pressure? Of five people in the bundled survey, three are learned from, and
    two ask. First, a private logistic regression is published, and compared with the same model
    without privacy. Then an oracle answers questions and protects those who ask as well. When it
    has answered as many questions as it has rows, it trains new models on them and goes on.
    Accuracies are not protected: they are printed to compare.
    """
    started = time.monotonic()
    typer.echo("Loading cumae and the survey. The first run also compiles, which takes longer.")
    # Here, because loading takes seconds: the line above is printed at once.
    from cumae import EverlastingPredictor, PrivateLogisticRegression  # noqa: PLC0415
    from cumae.datasets import load_health_survey  # noqa: PLC0415

    survey = load_health_survey()
    asks = np.arange(len(survey.data)) % GROUPS < ASKING
    X, y = survey.data[~asks], survey.target[~asks]
    questions = survey.data[asks].iloc[:QUESTIONS]
    truth = survey.target[asks].iloc[:QUESTIONS].to_numpy()
    columns = {name: (low, high, 1) for name, (low, high) in survey.bounds.items()}

    typer.echo(f"\n1. A model of {len(X):,} private interviews that may be published.")
    model = PrivateLogisticRegression(epsilon=epsilon, delta=DELTA, columns=columns).fit(X, y)
    free = PrivateLogisticRegression(epsilon=math.inf, delta=DELTA, columns=columns).fit(X, y)
    _say(f"Promise: {model.guarantee_}")
    private, best = ((one.predict(questions) == truth).mean() for one in (model, free))
    guessing = max(truth.mean(), 1 - truth.mean())
    _say(f"Accuracy for {len(truth):,} other people: {private:.1%}")
    _say(f"The same model without privacy: {best:.1%}. Guessing: {guessing:.1%}")

    typer.echo("\n2. An oracle that answers for ever. The models that vote are never published.")
    _say("Training thousands of small models ...")
    oracle = EverlastingPredictor(
        epsilon=epsilon, delta=DELTA, columns=columns, prior=PrivateLogisticRegression()
    ).fit(X, y)
    _say(f"Promise: {oracle.guarantee_}")
    answers = _ask(oracle, questions)
    right = (answers == truth).mean()
    _say(f"Accuracy of {len(answers):,} answers in {oracle.phase_} phases: {right:.1%}")
    _say("It would go on answering under the same promise.")
    typer.echo(f"\nDone in {time.monotonic() - started:.0f} seconds.")


def _ask(oracle: EverlastingPredictor, questions: Any) -> Any:
    """Return the answers, and say when the oracle goes on with new models."""
    answers, phase = [], 0
    for start in range(0, len(questions), BATCH):
        answers.append(oracle.predict(questions.iloc[start : start + BATCH]))
        if oracle.phase_ > phase:
            phase = oracle.phase_
            _say(f"Phase {phase}: {oracle.n_shards_:,} models vote, and noise is added ...")
    return np.concatenate(answers)


def _say(text: str) -> None:
    typer.echo(textwrap.fill(text, 100, initial_indent="   ", subsequent_indent="   "))
