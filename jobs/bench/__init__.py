"""`stopgap bench`: figures measured side by side in one run, as ratios."""

from __future__ import annotations

from importlib import import_module

import click

BENCHES = {
    "overhead": "jobs.bench.overhead:overhead",
    "index": "jobs.bench.index:index",
    "retrieval": "jobs.bench.retrieval:retrieval",
    "truncate": "jobs.bench.truncate:truncate",
    "cuts": "jobs.bench.cuts:cuts",
    "downstream": "jobs.bench.downstream:downstream",
    "candidates": "jobs.bench.candidates:candidates",
    "certify": "jobs.bench.certify:certify",
    "replay": "jobs.bench.replay:replay",
}


class Benches(click.Group):
    """Finds each benchmark in its own file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The benchmarks by name."""
        return list(BENCHES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The benchmark's command, or None."""
        if cmd_name not in BENCHES:
            return None
        module, name = BENCHES[cmd_name].split(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=Benches)
def bench() -> None:
    """Measures Stopgap on this machine. Each benchmark compares side by side and prints ratios.

    \b
    Examples:
      stopgap bench overhead
      stopgap bench overhead --json overhead.json
      stopgap bench index --sizes 10000,100000
    """
