"""The ``cumae`` command: one file for each of its commands."""

from cumae.cli import audit, demo
from cumae.cli.app import app, main

app.command()(demo.demo)
app.command()(audit.audit)

__all__ = ["app", "main"]
