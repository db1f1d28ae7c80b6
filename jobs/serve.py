"""`stopgap serve`: an experiment's retriever as an HTTP endpoint."""

from __future__ import annotations

import os
from contextlib import redirect_stderr, redirect_stdout

import click

from engine.config_file import load_config
from engine.retrieve.index import Index

TOKEN_ENV = "STOPGAP_TOKEN"


@click.command()
@click.argument("config", type=click.Path(dir_okay=False))
@click.argument("overrides", nargs=-1, metavar="[a.b=value ...]")
@click.option("--retriever", is_flag=True, required=True, help="Serve the retriever: POST /retrieve, GET /health.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port to listen on.")
@click.option("--insecure", is_flag=True, help="Listen on other than loopback without a token.")
@click.option("--address", help="Address of a Ray cluster; without it Ray is started on this machine.")
def serve(
    config: str,
    overrides: tuple[str, ...],
    retriever: bool,
    host: str,
    port: int,
    insecure: bool,
    address: str | None,
) -> None:
    """Serves the retriever of the experiment CONFIG (YAML) in the protocol of Search-R1, until Ctrl-C or SIGTERM.

    The server answers at once: 503 with a reason while the index loads (it is built first if it is not there), then
    200. Set STOPGAP_TOKEN to ask clients for `Authorization: Bearer <token>`. On a cluster the server listens on
    the head node.

    \b
    Examples:
      stopgap serve configs/quickstart.yaml --retriever
      stopgap serve configs/quickstart.yaml --retriever --port 8100 retriever.replicas=2
      STOPGAP_TOKEN=... stopgap serve configs/quickstart.yaml --retriever --host 0.0.0.0
    """
    experiment = load_config(config, overrides)
    from cluster.serve.server import serve_retriever
    from jobs.index import ensure_index
    from jobs.run import own_stderr

    # Ray reports its own end on standard output, where the server says nothing.
    with own_stderr() as stream, open(os.devnull, "w") as nothing, redirect_stdout(nothing):

        def load() -> Index:
            with redirect_stderr(stream):
                return ensure_index(experiment.retriever, address)

        serve_retriever(
            experiment,
            load,
            host,
            port,
            token=os.environ.get(TOKEN_ENV, "").strip() or None,
            insecure=insecure,
            address=address,
            say=lambda line: print(line, file=stream),
        )
