"""Promises and numbers in words that need no mathematics."""

from __future__ import annotations

import math

from cumae.privacy import Guarantee

USER = "user"
MOST_TIMES = 1e6  # above which a factor says nothing to a reader


def plain_promise(guarantee: Guarantee, yours: str | None = None) -> str:
    """Return what is promised to one person, in one sentence without mathematics.

    Parameters
    ----------
    guarantee : Guarantee
        The promise.
    yours : str, or None
        The thing of this person that is protected; None for what the promise says.

    Examples
    --------
    >>> from cumae.privacy import Guarantee
    >>> from cumae.serve.pages.words import plain_promise
    >>> print(plain_promise(Guarantee(1.0, 0.0, "one query", "one row is replaced", ())))
    Nothing that happens to you because of what is released and every use of it is more than ...
    """
    if guarantee.void:
        return f"Nothing is promised to anybody, because {guarantee.void_reason}."
    if not guarantee.epsilon < math.log(MOST_TIMES):
        return "Nothing that would help anybody is promised: epsilon is too large."
    covered = guarantee.covers.partition(",")[0].removesuffix(" together")
    apart = ""
    if guarantee.delta:
        apart = f", apart from a chance of one in {1 / guarantee.delta:,.0f}"
    return (
        f"Nothing that happens to you because of {covered} is more than "
        f"{math.exp(guarantee.epsilon):.3g} times as likely as if "
        f"{yours or of_yours(guarantee)}{apart}."
    )


def of_yours(guarantee: Guarantee) -> str:
    """Return what could have been another one, for the person that a promise protects."""
    what = guarantee.protects
    if USER in what:
        return "all your rows and questions had been other ones"
    if "private label" in what:
        return "the label of your row had been another one"
    if "query" in what:
        return "your row or your question had been another one"
    return "your row had been another one"


def protected(guarantee: Guarantee) -> str:
    """Return who is protected, in sentences.

    Examples
    --------
    >>> from cumae.privacy import Guarantee
    >>> from cumae.serve.pages.words import protected
    >>> protected(Guarantee(1.0, 0.0, "one training row", "one row is replaced", ()))
    'Everybody to whom one of the rows belongs. Those who ask are not part of the promise.'
    """
    what = guarantee.protects
    if guarantee.void:
        return "Nobody."
    if USER in what:
        return "Every person, with all of their rows and all of their questions together."
    if "private label" in what:
        who = "Everybody to whom one of the rows belongs, as far as its label goes."
    elif "training row" not in what and "query" in what:
        return "Everybody who asks, question by question."
    else:
        who = "Everybody to whom one of the rows belongs."
    if protects_asking(guarantee):
        return f"{who} Everybody who asks is protected by the same promise, question by question."
    return f"{who} Those who ask are not part of the promise."


def protects_asking(guarantee: Guarantee) -> bool:
    """Tell whether a promise is one to those who ask as well."""
    return not guarantee.void and ("query" in guarantee.protects or USER in guarantee.protects)


def not_covered(guarantee: Guarantee, *, is_oracle: bool) -> list[str]:
    """Return what the promise leaves out, as sentences.

    Parameters
    ----------
    guarantee : Guarantee
        The promise.
    is_oracle : bool
        Whether models behind it are kept secret.
    """
    found = [
        (
            "What is true of people in general. If the table shows that smokers fall ill more "
            "often, people will think so of every smoker, with or without the row of this one."
        ),
        (
            "How many rows and questions there are, when they come, and what was declared about "
            "the columns: names, ranges and categories are public."
        ),
    ]
    if USER not in guarantee.protects:
        found.append(
            "Several rows of one person. The promise is about a single one, and grows weaker with "
            "each more."
        )
    if "private label" in guarantee.protects:
        found.append("The rows themselves: they are public, and their labels alone are protected.")
    if protects_asking(guarantee):
        found.append("What those who ask tell others about their own question and its answer.")
    else:
        found.append(
            "Those who ask. This server keeps no question and writes none down, but no promise "
            "covers it."
        )
    if is_oracle:
        found.append(
            "Who holds the file and its keys, or the memory of this machine: what is inside must "
            "be kept as safe as the rows."
        )
    return found


def count(number: float, what: str) -> str:
    """Return a number of things, in words.

    Examples
    --------
    >>> from cumae.serve.pages.words import count
    >>> count(1, "row"), count(2_000, "answer")
    ('1 row', '2,000 answers')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(n_bytes: float) -> str:
    """Return a number of bytes as people say it.

    Examples
    --------
    >>> from cumae.serve.pages.words import size
    >>> size(900), size(3_200_000)
    ('900 bytes', '3.2 MB')
    """
    for unit, many in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= many:
            return f"{n_bytes / many:.1f} {unit}"
    return f"{n_bytes:,.0f} bytes"
