"""What a cut is worth downstream: the same loop over the same questions, with the lists cut in different ways."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from engine.config_file import load_config
from engine.report.markdown import markdown_head, markdown_row

EXPERIMENTS = ("hotpotqa-passages", "hotpotqa-s2g", "musique-passages", "musique-s2g")
CUTS = {
    "gapr": ("kind=gapr", "k_min=1", "k_max=~"),
    "adaptive_k": ("kind=adaptive_k",),
    "adaptive_k+5": ("kind=adaptive_k", "buffer=5"),
}
BASELINE = "cost_matched"
FIGURES = (("metrics", "retrieval_complete", 100.0), ("costs", "tokens", 1.0), ("metrics", "f1", 100.0))
"""(part of a comparison, figure, what to multiply it by), as in the table."""


@click.command()
@click.option("--configs", default="configs/experiments", show_default=True, help="Folder with the experiments.")
@click.option("--experiment", "only", multiple=True, help="Only this experiment; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), help="Use only the first N questions of each.")
@click.option("--runs-dir", default="runs", show_default=True, help="Where the runs go; finished ones are reused.")
@click.option("--out", default="downstream", show_default=True, help="Folder for one comparison report per experiment.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write {figure: value} to this file.")
def downstream(
    configs: str, only: tuple[str, ...], limit: int | None, runs_dir: str, out: str, json_file: str | None
) -> None:
    """Runs each experiment with GapR, AdaptiveK, AdaptiveK+5 and fixed K at GapR's own mean cost, and compares them.

    Against cost-matched fixed K, question by question: whether all gold was read, tokens of models, and answer F1, each
    difference with a paired bootstrap interval.
    """
    rows: list[tuple[str, str, float, Mapping[str, Any]]] = []
    for experiment in only or EXPERIMENTS:
        rows += _experiment(experiment, Path(configs), limit, runs_dir, Path(out))
    click.echo(table(rows))
    if json_file:
        figures = {
            f"{figure}_{experiment}_{cut}": compared[part][figure]["difference"]["mean"]
            for experiment, cut, _, compared in rows
            if cut != BASELINE
            for part, figure, _ in FIGURES
        }
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def table(rows: Sequence[tuple[str, str, float, Mapping[str, Any]]]) -> str:
    """(experiment, cut, mean hits kept, comparison with the cost-matched fixed K) per row, as Markdown.

    A row of that fixed K itself has any comparison with it.
    """
    head = ["experiment", "cut", "kept", "all gold read, %", "change", "tokens", "change", "answer F1, %", "change"]
    lines = markdown_head(*head)
    for experiment, cut, kept, compared in rows:
        cells = [experiment, cut, f"{kept:.2f}"]
        for part, figure, scale in FIGURES:
            cells += _pair(compared[part][figure], scale, baseline=cut == BASELINE)
        lines.append(markdown_row(*cells))
    return "\n".join(lines)


def _pair(paired: Mapping[str, Any], scale: float, *, baseline: bool) -> list[str]:
    change = paired["difference"]
    digits = 1 if scale > 1 else 0
    if baseline:
        return [f"{scale * paired['mean_a']:,.{digits}f}", ""]
    bounds = ", ".join(f"{scale * change[end]:+,.{digits}f}" for end in ("low", "high"))
    return [f"{scale * paired['mean_b']:,.{digits}f}", f"{scale * change['mean']:+,.{digits}f} [{bounds}]"]


def _experiment(
    name: str, configs: Path, limit: int | None, runs_dir: str, out: Path
) -> list[tuple[str, str, float, Mapping[str, Any]]]:
    from cluster.rundir import RunDir
    from jobs.report import write_report
    from jobs.run import run_experiment

    def run(cut: str, settings: Sequence[str]) -> tuple[str, float]:
        overrides = [f"name={name}-{cut.replace('+', '-plus-')}", f"runs_dir={runs_dir}"]
        overrides += [f"truncate.{setting}" for setting in settings]
        overrides += [f"questions.limit={limit}"] if limit else []
        location = run_experiment(load_config(configs / f"{name}.yaml", overrides), quiet=True)
        write_report([location])
        kept = json.loads(RunDir(location).store.read("metrics.json"))["retrieval"]["mean_kept"]
        return location, float(kept)

    made = {cut: run(cut, settings) for cut, settings in CUTS.items()}
    made[BASELINE] = run(BASELINE, (f"kind={BASELINE}", f"mean={made['gapr'][1]:.3f}"))
    cuts = [BASELINE, *CUTS]
    write_report([made[cut][0] for cut in cuts], str(out / name))
    comparisons = json.loads((out / name / "metrics.json").read_text(encoding="utf-8"))["comparisons"]
    rows = [(name, cut, made[cut][1], compared) for cut, compared in zip(CUTS, comparisons, strict=True)]
    return [(name, BASELINE, made[BASELINE][1], comparisons[0]), *rows]
