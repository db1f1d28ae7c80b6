"""`stopgap serve`: an experiment, or its retriever alone, as an HTTP endpoint."""

from __future__ import annotations

import os
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import click

from engine.config import ExperimentConfig
from engine.config_file import load_config
from engine.errors import ConfigError
from engine.retrieve.index import Index

TOKEN_ENV = "STOPGAP_TOKEN"


@click.command()
@click.argument("config", type=click.Path(dir_okay=False))
@click.argument("overrides", nargs=-1, metavar="[a.b=value ...]")
@click.option("--retriever", is_flag=True, help="Serve the retriever alone, and load no model.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port to listen on.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for an answer: 300; a search: 60."
)
@click.option("--waiting", type=click.IntRange(min=1), help="Most questions and queries unanswered: 1024; alone: 8192.")
@click.option("--insecure", is_flag=True, help="Listen on other than loopback without a token.")
@click.option("--address", help="Address of a Ray cluster; without it Ray is started on this machine.")
def serve(
    config: str,
    overrides: tuple[str, ...],
    retriever: bool,
    host: str,
    port: int,
    timeout: float | None,
    waiting: int | None,
    insecure: bool,
    address: str | None,
) -> None:
    """Serves the experiment CONFIG (YAML) until Ctrl-C or SIGTERM: questions in, answers with every round out.

    POST /v1/chat/completions speaks OpenAI's chat protocol: the last message is the question; with "stream": true
    each round is sent as it ends. A stopping policy is applied with policy.file=FILE. POST /retrieve, which --retriever
    serves alone, speaks the retrieval protocol of Search-R1.

    The server answers at once: 503 with a reason while index and models load (the index is built first if it is not
    there), then 200. Set STOPGAP_TOKEN to ask clients for `Authorization: Bearer <token>`. On a cluster the server
    listens on the head node.

    \b
    Examples:
      stopgap serve configs/quickstart.yaml
      stopgap serve configs/quickstart.yaml policy.file=policy.json --port 8100
      stopgap serve configs/quickstart.yaml --retriever retriever.replicas=2
      STOPGAP_TOKEN=... stopgap serve configs/quickstart.yaml --host 0.0.0.0
    """
    from cluster.serve.protocol import ANSWER_LIMITS, RETRIEVER_LIMITS
    from cluster.serve.server import serve_experiment
    from jobs.index import ensure_index
    from jobs.run import own_stderr

    experiment = load_config(config, overrides)
    if not retriever:
        experiment = _answering(experiment)
    limits = RETRIEVER_LIMITS if retriever else ANSWER_LIMITS
    limits = replace(limits, timeout_s=timeout or limits.timeout_s, waiting=waiting or limits.waiting)

    # Ray reports its own end on standard output, where the server says nothing.
    with own_stderr() as stream, open(os.devnull, "w") as nothing, redirect_stdout(nothing):

        def load() -> Index:
            with redirect_stderr(stream):
                return ensure_index(experiment.retriever, address)

        serve_experiment(
            experiment,
            load,
            host,
            port,
            limits,
            answers=not retriever,
            token=os.environ.get(TOKEN_ENV, "").strip() or None,
            insecure=insecure,
            address=address,
            say=lambda line: print(line, file=stream),
        )


def _answering(config: ExperimentConfig) -> ExperimentConfig:
    """The experiment with its policy settled. Raises ConfigError for one that gives no answers, or never stops."""
    from cluster.policy import with_policy

    if config.loop.kind == "retrieve_only":
        raise ConfigError("loop.kind retrieve_only gives no answers: serve it with --retriever, or set another loop")
    if config.observe.full_budget:
        raise ConfigError(
            "observe.full_budget records states and never stops early: serve with observe.full_budget=false"
        )
    return with_policy(config)
