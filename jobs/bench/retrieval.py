"""How well sparse, dense and hybrid retrieval find the evidence of several question sets: one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from engine.config_file import load_config
from engine.errors import DataError
from engine.report.markdown import markdown_head, markdown_row

PARTS = {
    "bm25": {"retriever": "bm25"},
    "dense": {"retriever": "minilm"},
    "hybrid": {"retriever.parts.sparse": "bm25", "retriever.parts.dense": "minilm"},
}
"""Ranker -> {retriever in its configuration: what its index is called}."""

COLUMNS = ("recall@10", "recall@30", "recall@100", "complete@10", "complete@30", "complete@100", "ndcg@10", "mrr")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A folder of the data directory: where its questions and passages are, and which questions are asked."""

    folder: str
    questions: str
    corpus: str
    split: str | None = None


SETS = (
    QuestionSet("hotpotqa", "hotpotqa/questions.jsonl", "hotpotqa/corpus.jsonl.gz"),
    QuestionSet("2wikimultihopqa", "2wikimultihopqa/questions.jsonl", "2wikimultihopqa/corpus.jsonl.gz"),
    QuestionSet("musique", "musique/questions.jsonl", "musique/corpus.jsonl.gz"),
    QuestionSet("scifact", "scifact/queries.test.jsonl", "scifact"),
)


@click.command()
@click.option("--data", default="../shared/data", show_default=True, help="Folder with the question sets.")
@click.option("--configs", default="configs/retrieval", show_default=True, help="Folder with one config per ranker.")
@click.option("--runs-dir", default="runs", show_default=True, help="Where the runs go; finished ones are reused.")
@click.option("--set", "only", multiple=True, help="Only this question set; may be repeated.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write {figure: value} to this file.")
def retrieval(data: str, configs: str, runs_dir: str, only: tuple[str, ...], json_file: str | None) -> None:
    """Runs each ranker over each question set without a model, and prints recall and complete evidence at k.

    recall@k is the share of a question's gold passages among the first k, complete@k whether all of them are.
    Every run is an ordinary one, `stopgap run configs/retrieval/RANKER.yaml ...`, and stays for `stopgap truncate`.
    """
    rows: list[tuple[str, str, Mapping[str, Any]]] = []
    for questions in _chosen(only):
        for ranker in PARTS:
            _, metrics = retrieve(questions, ranker, Path(data), Path(configs), runs_dir)
            rows.append((questions.folder, ranker, metrics))
            click.echo(_line(questions.folder, ranker, metrics), err=True)
    click.echo(table(rows))
    if json_file:
        figures = {
            f"{name}_{folder}_{ranker}": metrics[name]["mean"] for folder, ranker, metrics in rows for name in COLUMNS
        }
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def table(rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> str:
    """The results as a Markdown table: (question set, ranker, metrics with their intervals) per row, in %."""
    head = ["questions", "n", "ranker", *COLUMNS]
    lines = markdown_head(*head)
    for folder, ranker, metrics in rows:
        cells = [folder, str(metrics[COLUMNS[0]]["n"]), ranker, *(_cell(metrics[name]) for name in COLUMNS)]
        lines.append(markdown_row(*cells))
    return "\n".join(lines)


def _chosen(only: Sequence[str]) -> list[QuestionSet]:
    known = {questions.folder: questions for questions in SETS}
    unknown = sorted(set(only) - set(known))
    if unknown:
        raise DataError(f"--set {unknown[0]} is none of the question sets {', '.join(known)}")
    return [questions for questions in SETS if not only or questions.folder in only]


def retrieve(
    questions: QuestionSet, ranker: str, data: Path, configs: Path, runs_dir: str
) -> tuple[str, Mapping[str, Any]]:
    """The run of a ranker over a question set, asked now or found finished: its folder, and its metrics."""
    from cluster.rundir import RunDir
    from jobs.report import write_report
    from jobs.run import run_experiment

    overrides = [
        f"name={questions.folder}-{ranker}",
        f"runs_dir={runs_dir}",
        f"questions.path={data / questions.questions}",
    ]
    for part, index in PARTS[ranker].items():
        overrides += [
            f"{part}.corpus.path={data / questions.corpus}",
            f"{part}.index=indexes/{questions.folder}-{index}",
        ]
    location = run_experiment(load_config(configs / f"{ranker}.yaml", overrides), quiet=True)
    write_report([location])
    metrics: Mapping[str, Any] = json.loads(RunDir(location).store.read("metrics.json"))["metrics"]
    return location, metrics


def _line(folder: str, ranker: str, metrics: Mapping[str, Any]) -> str:
    return f"{folder} {ranker}: " + ", ".join(f"{name} {_cell(metrics[name])}" for name in COLUMNS[:4])


def _cell(interval: Mapping[str, Any]) -> str:
    if interval["mean"] is None:
        return "–"
    return f"{100 * interval['mean']:.1f} [{100 * interval['low']:.1f}, {100 * interval['high']:.1f}]"
