"""The page that the demo writes: three pictures, the numbers beside them, and the promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from cumae.audit import Audit
from cumae.charts import STYLE, Chart, Series, svg
from cumae.cli.demo.steps import AnswerScenario, Attacked, Interviews, Publication
from cumae.serve.pages.pictures import attack_chart, effect_chart
from cumae.serve.pages.words import plain_promise

YOURS = "your interview or your question had been another one"
MOST_EFFECTS, MOST_LINES = 3, 14
PAGE_STYLE = """\
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
p { max-width: 44rem; margin: .5rem 0; }
.promise { border-left: 4px solid var(--first); padding: .25rem 0 .25rem 1rem; font-size: 1.1rem; }
figure { margin: 1rem 0 0; display: grid; gap: 1rem 2rem; align-items: start;
  grid-template-columns: minmax(0, 35rem) minmax(0, 1fr); }
figure svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-size: .875rem; width: 100%;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--faint); padding-bottom: .25rem; }
th, td { padding: .1rem .6rem .1rem 0; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; }
thead th { font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 1rem 0; }
dt { color: var(--faint); } dd { margin: 0; }
footer { margin-top: 3rem; color: var(--faint); font-size: .9rem; }
code { font-size: .95em; overflow-wrap: anywhere; }
@media (max-width: 48rem) { figure { grid-template-columns: minmax(0, 1fr); } }
"""


@dataclass(frozen=True, eq=False)
class Findings:
    """All that the demo found.

    Parameters
    ----------
    interviews : Interviews
        The survey.
    advice : str
        What the planner said.
    published : Publication
        The published model.
    answered : GivenAnswers
        What the oracle did.
    attacked : sequence of Attacked
        What an attacker could prove.
    """

    interviews: Interviews
    advice: str
    published: Publication
    answered: AnswerScenario
    attacked: Sequence[Attacked]


def accuracy_chart(found: Findings) -> Chart:
    """Return accuracy against epsilon."""
    published, guessing = found.published, found.interviews.guessing
    epsilon = published.guarantee.epsilon
    values = [guessing, published.without, published.accuracy]
    values += [value for _, value in (*published.curve, *published.own_curve)]
    low, high = _around(values)
    wide = (min(0.003, epsilon), max(1.0, epsilon))
    return Chart(
        "accuracy",
        "Accuracy against epsilon",
        "A smaller epsilon means more privacy. Private models come close to one without privacy.",
        "epsilon: smaller protects more",
        "right answers",
        (
            Series("published", published.own_curve, 0),
            Series("simple model", published.curve, 1),
            Series("no privacy", _level(wide, published.without), 2, dots=False),
            Series("guessing", _level(wide, guessing), 3, dots=False),
        ),
        wide,
        (low, high),
        [(value, f"{value:g}") for value in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)],
        _percent(low, high),
        "x",
    )


def error_chart(found: Findings) -> Chart:
    """Return the oracle's error over its answers."""
    interviews, answered = found.interviews, found.answered
    sizes = [len(batch.answers) for batch in answered.batches]
    points = [
        (batch.start + size / 2, batch.wrong(interviews))
        for batch, size in zip(answered.batches, sizes, strict=True)
    ]
    total = float(sum(sizes))
    without, guessing = 1 - found.published.without, 1 - interviews.guessing
    low, high = _around([without, guessing, *(value for _, value in points)])
    marks = [(float(answered.killed), "killed")]
    for before, after in zip(answered.batches, answered.batches[1:], strict=False):
        if after.phase > before.phase:
            marks.append((float(after.start), f"phase {after.phase}"))
    return Chart(
        "error",
        "The oracle's error over its answers",
        "The share of wrong answers stays level through all phases and the restart.",
        "answers given",
        "wrong answers",
        (
            Series("oracle", points),
            Series("no privacy", _level((0.0, total), without), 2, dots=False),
            Series("guessing", _level((0.0, total), guessing), 3, dots=False),
        ),
        (0.0, total),
        (low, high),
        [(total * part, f"{total * part:,.0f}") for part in (0.0, 0.25, 0.5, 0.75, 1.0)],
        _percent(low, high),
        "",
        marks,
    )


def proven(found: Audit) -> str:
    """Return the epsilon that an attack proved and could have proven, in one sentence.

    Examples
    --------
    >>> from cumae.audit import Audit, Claimed
    >>> from cumae.cli.demo.page import proven
    >>> proven(Audit("a row", Claimed(4.0), 0.95, 1000, epsilon=3.2, rho=0.1, mu=0.6))
    'claimed 4, proven 3.20 (1,000 runs could prove 5.3): not broken.'
    """
    return (
        f"claimed {found.claimed.epsilon:.3g}, proven {found.as_epsilon:.2f} "
        f"({found.runs:,} runs could prove {found.most_as_epsilon:.2g}): {found.verdict}."
    )


def attack_lines(attacked: Sequence[Attacked]) -> list[str]:
    """Return what is said about all attacks, line by line."""
    found = []
    for item in attacked:
        found.append(f"The {item.target}, by {item.part} (all numbers are epsilon):")
        found += [f"  {proven(one)}" for one in item.audits]
        found += [f"  The same {one.planted}: {proven(one)}" for one in item.planted]
    return found


def attacks_chart(found: Findings) -> Chart:
    """Return proven against claimed epsilon, of the code and of planted bugs."""
    groups = [(item.target, item.audits) for item in found.attacked]
    groups.append(("planted bugs", [one for item in found.attacked for one in item.planted]))
    return attack_chart(
        [
            (name, [(one.claimed.epsilon, one.as_epsilon) for one in audits])
            for name, audits in groups
        ]
    )


def charts(found: Findings) -> list[Chart]:
    """Return the three pictures."""
    return [accuracy_chart(found), error_chart(found), attacks_chart(found)]


def _level(wide: tuple[float, float], value: float) -> tuple[tuple[float, float], ...]:
    return tuple((x, value) for x in wide)


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Return ends of an axis that hold all values with some room."""
    return math.floor(min(values) * 20 - 0.2) / 20, math.ceil(max(values) * 20 + 0.2) / 20


def _percent(low: float, high: float) -> list[tuple[float, str]]:
    """Return marks of an axis at whole multiples of 5 %."""
    first, last = round(low * 20), round(high * 20)
    step = max(1, (last - first) // 6)
    return [(place / 20, f"{place * 5} %") for place in range(first, last + 1, step)]


def page(found: Findings) -> str:
    """Return the whole page."""
    answered, published = found.answered, found.published
    accuracy, error, attacks = charts(found)
    count = sum(len(batch.answers) for batch in answered.batches)
    phases = answered.batches[-1].phase
    body = f"""\
<h1>{count:,} private answers about a health survey</h1>
<p class="promise">{escape(plain_promise(answered.guarantee, YOURS))}</p>
<p>Who has high blood pressure? cumae learned it from {len(found.interviews.X):,} interviews of a
public survey, as if they were secret, and answered {count:,} other people. Accuracies on this page
are compared with the truth, which is not protected: a real oracle does not know it.</p>
<p><strong>The plan.</strong> {escape(found.advice)}</p>
<h2>1. A model that may be published</h2>
<p>It is right for {published.accuracy:.1%} of the people who ask. Gradient boosting without any
privacy is right for {published.without:.1%}, and guessing for {found.interviews.guessing:.1%}. The
curves show models of its kind, and a simpler one, private logistic regression, at other epsilons.
They are there for the picture only: who publishes several models pays for all of them.</p>
{_figure(accuracy, _accuracy_table(found))}
{_about_effects(found)}
<h2>2. An oracle that answers for ever</h2>
<p>{answered.batches[0].models:,} small models vote, noise is added to the votes, and nobody sees
the models. Questions become the rows from which the models of the next phase learn, so that it
never ends: here it is in phase {phases}. Its first process was killed after {answered.killed:,}
answers. Another one opened the file and went on. No noise was used twice: to be sure of that, it
counted {answered.charged:,} answers as given that may never have left.</p>
{_figure(error, _error_table(found))}
<h2>3. An attacker who knows the code</h2>
{_about_attacks(found)}
{_figure(attacks, _attack_table(found))}
<h2>The full promises</h2>
<dl><dt>Model</dt><dd>{published.guarantee.to_html()}</dd>
<dt>Oracle</dt><dd>{answered.guarantee.to_html()}</dd></dl>
<footer><p>Beside this page are <code>model.json</code>, which may be published, and
<code>oracle.db</code> with its keys, which must not be. <code>cumae serve --config
serve.toml</code>, in this folder, serves both for programs and for people.</p></footer>"""
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>cumae: {count:,} private answers</title>
<style>
{STYLE}{PAGE_STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _figure(chart: Chart, table: str) -> str:
    return f"<figure>\n{svg(chart)}\n{table}\n</figure>"


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>"
    )


def _accuracy_table(found: Findings) -> str:
    published = found.published
    rows = [[f"simple model, epsilon {at:g}", f"{value:.1%}"] for at, value in published.curve]
    rows += [[f"published, epsilon {at:.3g}", f"{value:.1%}"] for at, value in published.own_curve]
    rows += [
        ["no privacy", f"{published.without:.1%}"],
        ["guessing", f"{found.interviews.guessing:.1%}"],
    ]
    return _table("Right answers", ["model", "right"], rows)


def _about_effects(found: Findings) -> str:
    """Return what the published model says about single columns, as pictures."""
    effects = found.published.effects[:MOST_EFFECTS]
    if not effects:
        return ""
    figures = "\n".join(
        _figure(effect_chart(place, one), _effect_table(one)) for place, one in enumerate(effects)
    )
    return f"""\
<h3>What it says about blood pressure</h3>
<p>What each of the strongest columns adds to the log odds of high blood pressure. An addition of
0.7 doubles the odds, and one of -0.7 halves them. The band is what noise and chance leave open.</p>
{figures}"""


def _effect_table(effect: dict[str, Any]) -> str:
    places = range(len(effect["values"]))
    if len(places) > MOST_LINES:
        places = range(0, len(places), math.ceil(len(places) / MOST_LINES))
    rows = [
        [
            "missing" if (value := effect["values"][place]) is None else f"{value:g}",
            f"{effect['log_odds'][place]:+.2f}",
            f"{2 * effect['spread'][place]:.2f}",
        ]
        for place in places
    ]
    return _table("Added to the log odds", [effect["column"], "adds", "give or take"], rows)


def _error_table(found: Findings) -> str:
    rows = [
        [
            f"{batch.start + 1:,} to {batch.start + len(batch.answers):,}",
            f"{batch.phase}",
            f"{batch.wrong(found.interviews):.1%}",
        ]
        for batch in found.answered.batches
    ]
    return _table("Wrong answers", ["answers", "phase", "wrong"], rows)


def _about_attacks(found: Findings) -> str:
    parts = ", and ".join(f"for the {item.target}, {item.part}" for item in found.attacked)
    return f"""\
<p>It plays against the code that releases numbers, on small tables, in two worlds that differ in
one row, and tries to tell them apart: {escape(parts)}. What comes before the noise is computed
once, so that a second has thousands of runs. Points below the line are proven and allowed. Above
the line a promise is broken. To show that the attack would see it, the same attack is played
against code with a planted bug, half the noise. Gaussian noise is measured by how far it moves
(mu), and shown as the epsilon that so much noise has.</p>"""


def _attack_table(found: Findings) -> str:
    rows = [
        [
            f"{item.target}, bug {one.verdict}" if one.planted else item.target,
            f"{one.claimed.epsilon:.3g}",
            f"{one.as_epsilon:.2f}",
            f"{one.most_as_epsilon:.2g}",
            f"{one.runs:,}",
        ]
        for item in found.attacked
        for one in (*item.audits, *item.planted)
    ]
    heads = ["attacked", "claimed", "proven", "could be", "runs"]
    return _table("Epsilon: claimed at most, proven at least", heads, rows)
