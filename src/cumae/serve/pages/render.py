"""Pages as bytes: templates, one style, one script, and the policy that lets nothing else in."""

from __future__ import annotations

import hashlib
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import cumae
from cumae import charts
from cumae.serve.pages import proofs, words

HERE = Path(__file__).parent
HTML = b"text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"same-origin"),  # with none, forms would not say where they come from
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"vary", b"accept, cookie"),
)


def _static() -> dict[str, tuple[bytes, bytes]]:
    """Return what pages load, by names that change with it."""
    style = charts.STYLE + (HERE / "static" / "style.css").read_text(encoding="utf-8")
    script = (HERE / "static" / "live.js").read_text(encoding="utf-8")
    found = {}
    for kind, end, text in ((b"text/css", "css", style), (b"text/javascript", "js", script)):
        content = text.encode()
        name = f"{hashlib.sha256(content).hexdigest()[:12]}.{end}"
        found[name] = (content, kind + b"; charset=utf-8")
    return found


STATIC = _static()
STYLE, SCRIPT = STATIC
TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals.update(
    style=STYLE,
    script=SCRIPT,
    version=cumae.__version__,
    count=words.count,
    size=words.size,
    inline=proofs.inline,
    drawn=lambda chart: Markup(charts.svg(chart)),  # noqa: S704 - it escapes all its texts
)


def page(template: str, **context: Any) -> bytes:
    """Return a page.

    Parameters
    ----------
    template : str
        The name of its template.
    **context : object
        What the template shows.
    """
    return TEMPLATES.get_template(template).render(context).encode()


def padded(words_of_answers: list[str]) -> dict[str, Markup]:
    """Return words, escaped, each with so many spaces behind it that all are equally long.

    Parameters
    ----------
    words_of_answers : list of str
        All answers that there can be.

    Examples
    --------
    >>> from cumae.serve.pages.render import padded
    >>> padded(["no", "yes", "<"])
    {'no': Markup('no  '), 'yes': Markup('yes '), '<': Markup('&lt;')}
    """
    escaped = {word: escape(word) for word in words_of_answers}
    width = max(len(text.encode()) for text in escaped.values())
    return {
        word: Markup(text + " " * (width - len(text.encode())))  # noqa: S704 - escaped above
        for word, text in escaped.items()
    }
