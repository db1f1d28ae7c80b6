"""`stopgap index`: a corpus to a fingerprinted index directory."""

from __future__ import annotations

import time
from typing import TextIO

import click

from engine.config import RetrieverConfig
from engine.config_file import load_config
from engine.retrieve.index import Index, is_built, open_index


@click.command()
@click.argument("config", type=click.Path(dir_okay=False))
@click.argument("overrides", nargs=-1, metavar="[a.b=value ...]")
@click.option("--address", help="Address of a Ray cluster for the embeddings; without it Ray is started here.")
def index(config: str, overrides: tuple[str, ...], address: str | None) -> None:
    """Builds the index that the experiment CONFIG (YAML) searches, from its corpus.

    The directory appears whole or not at all and carries a fingerprint: passage count, corpus digest, analyser and
    files. A run refuses an index whose fingerprint does not fit. An index that is there and fits is left alone.
    A dense index is embedded on Ray, by as many actors as its encoder has replicas, in shards that are kept when it
    is cut off: the same command goes on from there.

    \b
    Examples:
      stopgap index configs/quickstart.yaml
      stopgap index configs/quickstart.yaml retriever.index=/data/indexes/mine retriever.corpus.path=mine.jsonl.gz
    """
    retriever = load_config(config, overrides).retriever
    found = ensure_index(retriever, address)
    for name, part in (found.parts or {"index": found}).items():
        click.echo(f"{name}: {part.path or 'none needed'}, {part.n_docs} passages, fingerprint {part.digest[:12]}")


def ensure_index(config: RetrieverConfig, address: str | None = None) -> Index:
    """The checked index of a retriever, built first where there is none; of a hybrid, that of each part.

    address: the Ray cluster that makes the embeddings of a dense index; Ray is started only for those.
    """
    if is_built(config):
        return open_index(config)
    from cluster.index_build import build_on_ray
    from jobs.run import own_stderr

    with own_stderr() as stream:
        return build_on_ray(config, Lines(stream), address)


class Lines:
    """Says how far a build is, in a line every two seconds and at the end of each phase, with its pace."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = self._shown = time.monotonic()
        self._phase: tuple[str, float, int] = ("", 0.0, 0)

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase != self._phase[0]:
            self._phase = (phase, now, done)
        elif now - self._shown < 2.0 and done < total:
            return
        self._shown = now
        _, since, before = self._phase
        pace = ""
        if done > before and now > since:
            per_s = (done - before) / (now - since)
            pace = f", {per_s:.0f}/s, ETA {(total - done) / per_s:.0f} s"
        line = f"[{now - self._began:6.1f} s] building the index: {phase} {done}/{total} passages{pace}"
        click.echo(line, file=self._stream)
