"""The prediction server: oracles and published models behind the protocols of existing clients."""

from typing import Any


def run(settings: Any) -> None:
    """Serve until a signal comes; then answer what waits, and close all oracles.

    Parameters
    ----------
    settings : Settings
        What is served, and how.
    """
    from cumae.extras import needing  # noqa: PLC0415

    with needing("servers", "serve"):
        from cumae.serve import running  # noqa: PLC0415 - a server alone needs its packages

    running.run(settings)


__all__ = ["run"]
