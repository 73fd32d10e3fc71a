"""The command: it says what happens, step by step, writes the page, and serves both models."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from cumae import __version__
from cumae.cli.options import Full

MADE = "made.json"  # the options of a demo that came to its end
ROWS, QUESTIONS = 253_680, 100_000
ORACLE = "\n2. An oracle that answers for ever. The models that vote are never published."

Epsilon = Annotated[float, typer.Option(min=0.01, help="Privacy budget: smaller protects more.")]
Rows = Annotated[int, typer.Option(min=20_000, max=ROWS, help="Interviews of the survey to use.")]
Questions = Annotated[
    int, typer.Option(min=1_000, max=QUESTIONS, help="Questions to ask the oracle.")
]
Seconds = Annotated[float, typer.Option(min=0.1, help="Time for all attacks together.")]
Folder = Annotated[
    Path, typer.Option("--output", "-o", file_okay=False, help="Folder for the page.")
]
Serve = Annotated[
    bool,
    typer.Option(
        "--serve/--no-serve",
        help="Stay, in a terminal, until Ctrl-C; or check the pages and end.",
    ),
]
Anew = Annotated[
    bool, typer.Option("--anew", help="Make all anew, also if an earlier demo is there.")
]


def demo(
    epsilon: Epsilon = 1.0,
    rows: Rows = ROWS,
    questions: Questions = QUESTIONS,
    seconds: Seconds = 10.0,
    output: Folder = Path("demo"),
    serve: Serve = True,
    anew: Anew = False,
    full: Full = False,
) -> None:
    """Publish a model of a health survey, let an oracle answer 100,000 questions, attack both.

    Who has high blood pressure? Of five people in the bundled survey, three are learned from, and
    two ask. A model is planned, published, and compared with one without privacy. A durable oracle
    answers the questions and protects those who ask as well; its process is killed in the middle,
    and another one goes on. Then both are attacked, a page with pictures is written to
    `demo/index.html`, and both are served on this machine, with pages for people. Accuracies are
    not protected: they are shown to compare.

    Example: `cumae demo --epsilon 0.5 --output demo`
    """
    started = time.monotonic()
    typer.echo("Loading cumae and the survey ...")
    # Here, because loading takes seconds: the line above is printed at once.
    from cumae.cli.demo import steps  # noqa: PLC0415

    _make(output)
    interviews = steps.Interviews.read(rows, questions)
    made = {"version": __version__, "epsilon": epsilon, "rows": rows, "questions": questions}
    if not anew and _is_there(output, made):
        typer.echo(f"The model and the oracle of an earlier demo are in {output}; --anew makes all")
        typer.echo("anew.")
    else:
        (output / MADE).unlink(missing_ok=True)
        _present(interviews, made, seconds, output, full=full)
        (output / MADE).write_text(json.dumps(made), encoding="utf-8")
        typer.echo(
            f"\nWritten in {time.monotonic() - started:.0f} seconds: {output / 'index.html'}"
        )
    _serve(interviews, output, stay=serve and sys.stdin.isatty() and sys.stdout.isatty())


def _is_there(output: Path, made: dict[str, Any]) -> bool:
    """Return whether an earlier demo with the same options came to its end."""
    try:
        return bool(json.loads((output / MADE).read_text(encoding="utf-8")) == made)
    except (OSError, ValueError):
        return False


def _present(
    interviews: Any, made: dict[str, Any], seconds: float, output: Path, *, full: bool
) -> None:
    """Publish a model, make the oracle, kill it, attack both, and write the page."""
    from cumae.charts import picture  # noqa: PLC0415 - loading takes seconds
    from cumae.cli.demo import asking, page, serving, steps  # noqa: PLC0415
    from cumae.cli.files.messages import promise_lines  # noqa: PLC0415

    count, epsilon = len(interviews.questions), made["epsilon"]
    with ThreadPoolExecutor(1) as pool:  # the oracle has a process of its own, beside the model
        process = steps.asking_process(output, made["rows"], made["questions"], epsilon)
        first = pool.submit(steps.killed_at, process, 6 * count // 10, asking.said)

        typer.echo(f"\n1. A model of {len(interviews.X):,} private interviews, to be published.")
        advice = steps.planner_says(interviews, epsilon)
        _say(f"Plan: {advice}")
        published = steps.publish(interviews, epsilon, output / "model.json")
        typer.echo(promise_lines(published.guarantee, full=full, indent="   "))
        guessing = f"Always saying no: {interviews.guessing:.1%}"
        _say(f"Accuracy for {count:,} other people: {published.accuracy:.1%}. {guessing}")
        _say(f"Gradient boosting without privacy: {published.without:.1%}")

        typer.echo(ORACLE)
        _say("A process of its own trains thousands of small models and asks them ...")
        before = first.result()
    given = sum(len(batch.answers) for batch in before)
    _say(f"It was killed after {given:,} answers. Another process opens the file and goes on ...")
    answered = steps.go_on(interviews, output / "oracle.db", before)
    _say(f"Answers that were paid for and may have been lost in the crash: {answered.charged:,}")
    typer.echo(promise_lines(answered.guarantee, full=full, indent="   "))
    for phase, models in {batch.phase: batch.models for batch in answered.batches}.items():
        _say(f"Phase {phase}: {models:,} models vote, and noise is added.")
    until, right = answered.batches[-1].phase, 1 - answered.wrong(interviews)
    _say(f"Accuracy of {count:,} answers, up to phase {until}: {right:.1%}. {guessing}")
    _say("It would go on answering under the same promise.")

    typer.echo(f"\n3. An attacker who knows the code, for {seconds:g} seconds.")
    attacked = steps.attack(published.name, epsilon, seconds)
    for line in page.attack_lines(attacked):
        _say(line)
    found = page.Findings(interviews, advice, published, answered, attacked)
    (output / "index.html").write_text(page.page(found), encoding="utf-8")
    (output / "picture.svg").write_text(picture(page.charts(found)[:2]), encoding="utf-8")
    serving.write_settings(output, attacked)


def _serve(interviews: Any, output: Path, *, stay: bool) -> None:
    """Serve both, ask ten questions, and check the pages; stay until Ctrl-C if that is wanted."""
    from cumae.cli.demo import serving  # noqa: PLC0415 - loading takes seconds

    typer.echo("\n4. Both on a server of this machine, for programs and for people.")
    with serving.serving(output) as (process, address):
        _say(f"It listens at {address} and at no other address.")
        for name, answers in serving.ask_both(address, interviews).items():
            digits = " ".join(map(str, answers))
            _say(f"A client asks the {name} about {len(answers)} people: {digits}")
        _say(f"{serving.check_pages(address)} pages were loaded, all of them from there.")
        if stay:
            _say(f"Open {address} in a browser. Ctrl-C ends the server.")
            try:
                process.wait()
            except KeyboardInterrupt:
                typer.echo("")
    _say("The server has ended, and the oracle is closed.")


def _make(output: Path) -> None:
    """Make the folder for the page; refuse if packages for the oracle are not there."""
    from cumae.store import place_of  # noqa: PLC0415 - takes seconds

    place_of(output / "oracle.db")
    output.mkdir(parents=True, exist_ok=True)


def _say(text: str) -> None:
    typer.echo(textwrap.fill(text, 100, initial_indent="   ", subsequent_indent="   "))
