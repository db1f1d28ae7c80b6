"""Every truncation method on every question set and ranker: the tables of docs/truncation.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from engine.report.markdown import markdown_head, markdown_row
from engine.score.truncation_compare import Fit, Request
from engine.score.truncation_settings import methods
from jobs.bench.retrieval import PARTS, SETS, retrieve
from jobs.truncate import compare_lists
from jobs.truncate_input import ListInput, read_judgements
from jobs.truncate_output import write_figures

DEPTH = 30
TITLES = {"hotpotqa": "HotpotQA", "2wikimultihopqa": "2Wiki", "musique": "MuSiQue"}
DEV = frozenset({"dev", "dev_distractor", "validation_distractor"})
STRATEGIES = {
    "adaptive_k, moving average": "strategy=moving_average",
    "adaptive_k, second difference": "strategy=second_difference",
}
"""Row -> what it changes of adaptive_k; the other methods are compared at their defaults, or fitted."""
BUFFERS = range(13)
"""Buffers of adaptive_k between which one of GapR's own cost is looked for; that of 5 is a row, too."""
ROBUST04 = ("bm25", "drmm")

Table = dict[str, dict[str, Mapping[str, Any]]]
"""Column -> row -> a method's figures."""


@click.command()
@click.option("--data", default="../shared/data", show_default=True, help="Folder with the question sets and runs.")
@click.option("--configs", default="configs/retrieval", show_default=True, help="Folder with one config per ranker.")
@click.option(
    "--runs-dir", default="runs/retrieval", show_default=True, help="The rankers' runs; finished ones are reused."
)
@click.option("--out", default="cuts", show_default=True, help="Folder for one page with frontiers per table.")
def cuts(data: str, configs: str, runs_dir: str, out: str) -> None:
    """Cuts the lists of three rankers on three multi-hop question sets by every method, and prints Markdown tables.

    Top 30, dev questions; first at the methods' defaults, then with parameters chosen on the train questions. After
    them the method's side claims, and Robust04 and SciFact, whose questions need no second hop.
    """
    runs = {
        (questions.folder, ranker): retrieve(questions, ranker, Path(data), Path(configs), runs_dir)[0]
        for questions in SETS
        for ranker in PARTS
    }
    multi_hop = [location for (folder, _), location in runs.items() if folder in TITLES]
    columns = [(folder, ranker) for folder, ranker in runs if folder in TITLES]

    figures = _compare(multi_hop, Request(methods(None), DEPTH, reported=DEV), Path(out) / "defaults")
    defaults = dict(zip(columns, figures["cells"], strict=True))
    rows = {column: _by_method(cell) for column, cell in defaults.items()}
    buffers = [dict(_adaptive_k(columns, multi_hop, f"adaptive_k.buffer={buffer}")) for buffer in BUFFERS]
    variants = {name: _adaptive_k(columns, multi_hop, f"adaptive_k.{changed}") for name, changed in STRATEGIES.items()}
    for name, found in (("adaptive_k, buffer 5", buffers[5].items()), *variants.items()):
        for column, cell in found:
            rows[column][name] = cell
    fitted = _compare(multi_hop, Request(methods(None), DEPTH, fit=Fit(frozenset({"train"}))), Path(out) / "fitted")
    chosen = dict(zip(columns, map(_by_method, fitted["cells"]), strict=True))

    for heading, tables in (("Defaults", rows), ("Parameters chosen on train questions", chosen)):
        click.echo(f"## {heading}\n")
        for ranker in PARTS:
            click.echo(table(ranker, {title: tables[folder, ranker] for folder, title in TITLES.items()}) + "\n")
    click.echo("## Side claims\n\n" + claims(defaults, buffers) + "\n")
    click.echo("## Single hop\n\n" + table("", _single_hop(Path(data), runs, Path(out))))


def table(corner: str, columns: Table) -> str:
    """One row per method: macro-F1 in % @ mean kept, and the difference to fixed top-k at the same mean cost."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    lines = markdown_head(corner, *columns)
    for name in sorted(names, key=lambda name: (name.startswith("oracle"), _after(name, list(names)))):
        lines.append(markdown_row(name, *(_cell(column.get(name)) for column in columns.values())))
    return "\n".join(lines)


def claims(
    cells: Mapping[tuple[str, str], Mapping[str, Any]], buffers: Sequence[Mapping[Any, Mapping[str, Any]]]
) -> str:
    """Per set and ranker: gold after the largest gap, and who cuts it off, GapR or AdaptiveK + B.

    buffers: adaptive_k's figures by cell, one for each buffer. At GapR's own cost AdaptiveK + B is a random mixture of
    the two neighbouring buffers, whose share of under-truncated queries lies between theirs.
    """
    head = [
        "questions",
        "ranker",
        "reachable",
        "gold after the largest gap, %",
        "under-truncated, %: GapR",
        "AdaptiveK+5",
    ]
    lines = markdown_head(*head, "AdaptiveK+B at GapR's cost")
    for (folder, ranker), cell in cells.items():
        after = cell["gold_after_largest_gap"]
        gapr = _by_method(cell)["gapr"]
        kept = [found[folder, ranker]["kept"]["mean"] for found in buffers]
        under = [found[folder, ranker]["under"] for found in buffers]
        cost = gapr["kept"]["mean"]
        matched = float(np.interp(cost, kept, under))
        buffer = float(np.interp(cost, kept, list(BUFFERS)))
        values = [
            TITLES[folder],
            ranker,
            str(cell["reachable"]),
            f"{100 * after['mean']:.1f} [{100 * after['low']:.1f}, {100 * after['high']:.1f}]",
            f"{100 * gapr['under']:.1f} @ {cost:.2f}",
            f"{100 * under[5]:.1f} @ {kept[5]:.2f}",
            f"{100 * matched:.1f} (B {buffer:.1f})",
        ]
        lines.append(markdown_row(*values))
    return "\n".join(lines)


def _compare(sources: Sequence[str], request: Request, out: Path | None = None) -> dict[str, Any]:
    found = ListInput()
    for source in sources:
        found.add_source(source)
    return _figures(found, request, out)


def _figures(found: ListInput, request: Request, out: Path | None) -> dict[str, Any]:
    figures = compare_lists(found, request, say=lambda line: click.echo(line, err=True))
    if out:
        click.echo(f"page: {write_figures(out, figures)}", err=True)
    return figures


def _adaptive_k(
    columns: Sequence[tuple[str, str]], sources: Sequence[str], override: str
) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    figures = _compare(sources, Request(methods(["adaptive_k"], [override]), DEPTH, reported=DEV))
    for column, cell in zip(columns, figures["cells"], strict=True):
        yield column, cell["methods"][0]


def _single_hop(data: Path, runs: Mapping[tuple[str, str], str], out: Path) -> Table:
    robust = ListInput()
    folder = data / "robust04_runs"
    judged = read_judgements([f"robust04={folder / 'qrels_relevant_only.txt.gz'}"])
    robust.add_runs([f"{ranker}={folder / f'{ranker}.test.run.gz'}" for ranker in ROBUST04], judged)
    request = Request(methods(None), DEPTH)
    cells = _figures(robust, request, out / "robust04")["cells"]
    cells += _compare([runs["scifact", ranker] for ranker in PARTS], request, out / "scifact")["cells"]
    names = [*(f"Robust04, {ranker}" for ranker in ROBUST04), *(f"SciFact, {ranker}" for ranker in PARTS)]
    return dict(zip(names, map(_by_method, cells), strict=True))


def _by_method(cell: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {figures["method"]: figures for figures in cell["methods"]}


def _after(name: str, names: Sequence[str]) -> tuple[int, int]:
    """Where a row belongs: a variant right after its method."""
    method = name.partition(",")[0]
    return names.index(method), names.index(name)


def _cell(figures: Mapping[str, Any] | None) -> str:
    if figures is None:
        return "–"
    change = figures["against"]["f1"]["difference"]
    gain = f"{100 * change['mean']:+.1f} [{100 * change['low']:+.1f}, {100 * change['high']:+.1f}]"
    return f"{100 * figures['f1']['mean']:.1f} @ {figures['kept']['mean']:.2f}, {gain}"
