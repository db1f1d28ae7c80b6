"""`stopgap doctor`: what is missing for a run, and what to do about it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from engine.finding import Finding, Status, examined, ok

if TYPE_CHECKING:
    from cluster.doctor import Site
    from engine.config import ExperimentConfig, PoolConfig

# Everything else is imported by the check that needs it: in a broken installation it is the import that breaks.


@click.command()
@click.argument("config", required=False, type=click.Path(dir_okay=False))
@click.argument("overrides", nargs=-1, metavar="[a.b=value ...]")
@click.option("--address", help="Address of a Ray cluster to look at; without it RAY_ADDRESS, else this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON list.")
def doctor(config: str | None, overrides: tuple[str, ...], address: str | None, as_json: bool) -> None:
    """Checks this machine, and with CONFIG (YAML) everything that the experiment needs. Starts and changes nothing.

    One line per check: `ok`, `warn` (a run is possible) or `fail` (it is not), what was found, and what to do.
    Without CONFIG: Python, packages, Java, Ray, memory, disk. With it also: CPUs and GPUs asked for, memory of
    models, questions, corpus and index, models, adapters and keys. Exit code 0 if nothing fails, else 2.

    \b
    Examples:
      stopgap doctor
      stopgap doctor configs/quickstart.yaml
      stopgap doctor configs/experiments/hotpotqa-s2g.yaml models.main.num_gpus=1 --address auto
      stopgap doctor configs/quickstart.yaml --json
    """
    findings = []
    for finding in examine(config, overrides, address or os.environ.get("RAY_ADDRESS") or None):
        findings.append(finding)
        if not as_json:
            click.echo(finding.line)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    if any(finding.status is Status.FAIL for finding in findings):
        sys.exit(2)


def examine(config: str | None, overrides: tuple[str, ...] = (), address: str | None = None) -> Iterator[Finding]:
    """All findings, as they are made; no check keeps another from being made."""
    yield from examined("packages", _packages)
    read: list[ExperimentConfig] = []
    if config is not None:
        yield from examined("configuration", _configuration, config, overrides, read)
    experiment = read[0] if read else None
    yield from examined("java", _java, experiment)
    yield from examined("disk", _disk, experiment)
    sites: list[Site] = []
    yield from examined("ray", _ray, address, sites)
    for site in sites:
        yield from examined("cpus and gpus", _room, experiment, site)
        yield from examined("memory", _memory, experiment, site)
        yield from examined("shared memory", _shared_memory, site)
    if experiment is not None:
        yield from examined("questions", _questions, experiment)
        yield from examined("index", _index, experiment)
        for name, pool in _models(experiment):
            yield from examined(name, _model, name, pool)


def _packages() -> Iterator[Finding]:
    from engine.requirements import check_extras, check_packages, check_python, declared

    python, requirements, extras = declared()
    yield check_python(platform.python_version(), python)
    yield from check_packages(requirements)
    yield from check_extras(requirements, extras)


def _configuration(path: str, overrides: tuple[str, ...], read: list[ExperimentConfig]) -> Iterator[Finding]:
    from engine.config_file import load_config

    read.append(load_config(path, overrides))
    yield ok("configuration", f"{path}, experiment {read[0].name}")


def _java(experiment: ExperimentConfig | None) -> Iterator[Finding]:
    from engine.machine import check_java
    from engine.retrieve.compose import leaves

    kinds = [leaf.kind for leaf in leaves(experiment.retriever).values()] if experiment else ["bm25"]
    yield check_java(needed="bm25" in kinds)


def _disk(experiment: ExperimentConfig | None) -> Iterator[Finding]:
    from engine.machine import check_disk

    if experiment is None:
        yield check_disk(".", 0, None)
        return
    from jobs.dry_run import question_bytes

    yield check_disk(experiment.runs_dir, question_bytes(experiment), experiment.questions.limit)


def _ray(address: str | None, sites: list[Site]) -> Iterator[Finding]:
    from cluster.doctor import check_ray, survey

    sites.append(survey(address))
    yield check_ray(sites[0])


def _room(experiment: ExperimentConfig | None, site: Site) -> Iterator[Finding]:
    from cluster.doctor import check_room

    if experiment is not None:
        yield check_room(experiment, site)


def _memory(experiment: ExperimentConfig | None, site: Site) -> Iterator[Finding]:
    from cluster.doctor import site_memory
    from engine.machine import check_memory

    needed: dict[str, int] = {}
    if experiment is not None:
        from jobs.dry_run import memory_bytes

        needed = memory_bytes(experiment)
    yield check_memory(needed, *site_memory(site))


def _shared_memory(site: Site) -> Iterator[Finding]:
    from cluster.session import OBJECT_STORE_BYTES
    from engine.machine import check_shared_memory
    from engine.room import shared_memory_free

    if site.address is None:
        yield check_shared_memory(shared_memory_free(), OBJECT_STORE_BYTES)


def _questions(experiment: ExperimentConfig) -> Iterator[Finding]:
    from engine.readiness import check_questions

    yield check_questions(experiment.questions)


def _index(experiment: ExperimentConfig) -> Iterator[Finding]:
    from engine.readiness import check_index
    from engine.retrieve.compose import leaves

    for leaf in leaves(experiment.retriever).values():
        yield from check_index(leaf)


def _models(experiment: ExperimentConfig) -> list[tuple[str, PoolConfig]]:
    from engine.services import pools_of

    return [(name, pool) for name, pool in pools_of(experiment).items() if not name.startswith("retriever")]


def _model(name: str, pool: PoolConfig) -> Iterator[Finding]:
    from engine.readiness import check_pool

    yield from check_pool(name, pool)
