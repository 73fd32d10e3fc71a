"""The ``cumae`` command: one file for each of its commands."""

from cumae.cli import (
    audit,
    backup,
    demo,
    destroy,
    keys,
    restore,
    select,
    serve,
    status,
    theorems,
    verify,
)
from cumae.cli.app import app, main
from cumae.cli.models import fit, plan, predict, schema, score, show

app.command()(demo.demo)
app.command()(plan.plan)
app.command()(schema.schema)
app.command()(select.select)
app.command()(fit.fit)
app.command()(predict.predict)
app.command()(score.score)
app.command()(show.show)
app.command()(serve.serve)
app.add_typer(keys.keys)
app.command()(status.status)
app.command()(verify.verify)
app.command()(backup.backup)
app.command()(restore.restore)
app.command()(destroy.destroy)
app.command()(audit.audit)
app.command()(theorems.theorems)

__all__ = ["app", "main"]
