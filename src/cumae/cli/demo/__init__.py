"""``cumae demo``: everything that cumae promises, shown on the bundled survey."""

from cumae.cli.demo.command import demo

__all__ = ["demo"]
