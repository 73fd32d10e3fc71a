"""The ``cumae`` command: one file for each of its commands."""

from cumae.cli import demo
from cumae.cli.app import app, main

app.command()(demo.demo)

__all__ = ["app", "main"]
