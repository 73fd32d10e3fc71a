"""The ``cumae`` command: one file for each of its commands."""

from cumae.cli import audit, backup, demo, destroy, status, verify
from cumae.cli.app import app, main

app.command()(demo.demo)
app.command()(audit.audit)
app.command()(status.status)
app.command()(verify.verify)
app.command()(backup.backup)
app.command()(destroy.destroy)

__all__ = ["app", "main"]
