"""``cumae serve``: answers for programs, from oracles and published models."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from cumae.cli.options import Keys


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Oracles (files or addresses) and published models, each named after its file.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config", metavar="FILE", help="A TOML file with all settings, instead of options."
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen at: 127.0.0.1 by default.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="The port: 8080 by default; 0 for one that is free."),
    ] = None,
    access: Annotated[
        str | None,
        typer.Option(
            "--access",
            metavar="FILE",
            help="The file of clients' keys, which `cumae keys new` makes.",
        ),
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate for TLS.")
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="The key of the certificate.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front of the server ends TLS.")
    ] = False,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule", metavar="STEP", help="Give answers at fixed times only: each 10ms, say."
        ),
    ] = None,
    keys: Keys = None,
) -> None:
    """Answer programs by the protocols of inference servers, and people in a browser.

    Programs speak the Open Inference Protocol, KServe's or MLflow's. An oracle in a file can be
    open in one process only. Ctrl-C or SIGTERM stops the server: requests that wait are answered,
    oracles are closed, and the exit code is 0.

    Example: `cumae serve oracle.db model.json --access access.json`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(config, access, tls_cert, tls_key, *(models or ()))
    from cumae.errors import InvalidParameter  # noqa: PLC0415
    from cumae.serve import run  # noqa: PLC0415
    from cumae.serve.settings import (  # noqa: PLC0415
        ModelSettings,
        Settings,
        check_no_password,
        from_toml,
    )

    flags: dict[str, Any] = {"host": host, "port": port, "access": access}
    flags |= {"tls_cert": tls_cert, "tls_key": tls_key, "behind_proxy": behind_proxy or None}
    given = {name: value for name, value in flags.items() if value is not None}
    if config is not None:
        if given or models or keys or schedule:
            raise InvalidParameter("--config has all settings; give no others beside it.")
        run(from_toml(config))
        return
    for address in models or ():
        check_no_password(address)
    served = tuple(
        ModelSettings(address, keys=keys, schedule=schedule or "") for address in models or ()
    )
    run(replace(Settings(models=served), **given))
