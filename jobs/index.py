"""`stopgap index`: a corpus to a fingerprinted index directory."""

from __future__ import annotations

import time

import click

from engine.config import PoolConfig
from engine.config_file import load_config
from engine.retrieve.index import Index, build_index, is_built, open_index


@click.command()
@click.argument("config", type=click.Path(dir_okay=False))
@click.argument("overrides", nargs=-1, metavar="[a.b=value ...]")
def index(config: str, overrides: tuple[str, ...]) -> None:
    """Builds the index that the experiment CONFIG (YAML) searches, from its corpus.

    The directory appears whole or not at all and carries a fingerprint: passage count, corpus digest, analyser and
    files. A run refuses an index whose fingerprint does not fit. An index that is there and fits is left alone.

    \b
    Examples:
      stopgap index configs/quickstart.yaml
      stopgap index configs/quickstart.yaml retriever.index=/data/indexes/mine retriever.corpus.path=mine.jsonl.gz
    """
    retriever = load_config(config, overrides).retriever
    found = ensure_index(retriever)
    click.echo(f"index: {found.path or 'none needed'}, {found.n_docs} passages, fingerprint {found.digest[:12]}")


def ensure_index(config: PoolConfig) -> Index:
    """The checked index of a retriever, built first where there is none."""
    if is_built(config):
        return open_index(config)
    began = time.monotonic()
    shown = 0.0

    def show(phase: str, done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= 2.0 or done == total:
            shown = now
            click.echo(f"[{now - began:6.1f} s] building the index: {phase} {done}/{total} passages", err=True)

    return build_index(config, show)
