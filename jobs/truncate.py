"""`stopgap truncate`: truncation methods compared on ranked lists with known gold."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from engine.errors import ConfigError
from engine.report.truncation_table import render_table
from engine.score.truncation_compare import Fit, Request, compare
from engine.score.truncation_frontier import OBJECTIVES
from engine.score.truncation_kept import Plan
from engine.score.truncation_settings import COST_MATCHED, methods
from jobs.run import own_stderr
from jobs.terminal import show_table
from jobs.truncate_input import ListInput, read_judgements
from jobs.truncate_output import CutWriter, RunWriter, write_figures

SHOW_EVERY_S = 2.0


@click.command()
@click.argument("arguments", nargs=-1, metavar="[RUN_DIR | LISTS.parquet ...] [method.parameter=value ...]")
@click.option("--run", "runs", multiple=True, metavar="[DATASET/]RANKER=FILE", help="A run file. May be repeated.")
@click.option("--qrels", multiple=True, metavar="[DATASET=]PATH", help="Judgements: a qrels file or a BEIR folder.")
@click.option(
    "--min-grade", type=click.IntRange(min=1), default=1, show_default=True, help="Lowest grade that is gold."
)
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Look at the first N documents of lists only.")
@click.option("--methods", "names", metavar="A,B,...", help="Methods to compare; without it, all.")
@click.option(
    "--baseline", default=COST_MATCHED, show_default=True, metavar="METHOD", help="What they are compared with."
)
@click.option("--split", "reported", multiple=True, help="Report on this split. May be repeated.")
@click.option("--fit", multiple=True, metavar="SPLIT", help="Choose parameters on this split, report on the others.")
@click.option("--fit-run", "fit_runs", multiple=True, metavar="[DATASET/]RANKER=FILE", help="Choose them on this run.")
@click.option("--fit-qrels", multiple=True, metavar="[DATASET=]PATH", help="Judgements of the fit runs, if others.")
@click.option(
    "--objective", type=click.Choice(OBJECTIVES), default="f1", show_default=True, help="What a fit maximises."
)
@click.option("--max-kept", type=click.FloatRange(min=0), metavar="K", help="Fit: keep at most K documents on average.")
@click.option("--corpus", metavar="PATH", help="Texts of the documents, to count the tokens that are kept.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for report.html, metrics.json and tables.")
@click.option("--emit", type=click.Path(file_okay=False), help="Folder for the truncated lists as TREC runs.")
@click.option("--address", help="Address of a Ray cluster for many lists; without it Ray starts on this machine.")
def truncate(
    arguments: tuple[str, ...], out: str | None, emit: str | None, address: str | None, **options: Any
) -> None:
    """Compares ways to cut ranked lists: what each keeps of the gold, and how many documents that takes.

    Lists come from TREC runs (plain or gzip) or Parquet tables of qid, doc_id and score, given with judgements; or
    from folders of `stopgap run`, where every retrieval is a list and the gold is what was not yet read. Each method
    is compared with fixed top-k at the same mean number of documents, list by list, with paired bootstrap intervals.
    The page in OUT draws its quality over its cost for a grid of its parameters.

    A list is in order of score; ties keep the order of ranks, then of the file. A document that comes twice counts
    once. Queries without gold, judgements or list are left out of the means and counted. Up to 20,000 lists are cut
    in this process; more stream through Parquet files in OUT/lists (which can be given again as LISTS.parquet) and
    Ray Data tasks.

    \b
    Methods: fixed, gapr, adaptive_k, surprise, taa_k, autocut, kneedle, score_threshold,
    ratio_threshold, top_p, expected_f1; and oracle_f1, oracle_last_gold, which are told the gold.

    \b
    Examples:
      stopgap truncate --run bm25=bm25.run.gz --qrels qrels.txt --depth 30
      stopgap truncate --run bm25=bm25.run --run dense=dense.parquet --qrels scifact/ --split test --out cuts
      stopgap truncate runs/hotpotqa-s2g-1a2b3c4d --methods gapr,adaptive_k gapr.eta=0.1 adaptive_k.buffer=5
      stopgap truncate --run bm25=test.run --fit-run bm25=train.run --qrels qrels.txt --emit truncated
      stopgap truncate runs/musique-5e6f7a8b --fit train --objective complete --max-kept 8
    """
    if address and not out:
        raise ConfigError("a cluster needs a folder that every node can see: name it with --out")
    found = _input([text for text in arguments if "=" not in text], options)
    request = _request([text for text in arguments if "=" in text], found.fit_splits, options)
    with own_stderr() as stream:
        figures = compare_lists(found, request, out, emit, address, lambda line: print(line, file=stream))
    show_table(render_table(figures))
    if out:
        click.echo(f"report: {write_figures(Path(out), figures)}")
    else:
        click.echo("name a folder with --out for the page, metrics.json and the tables", err=True)


def compare_lists(
    found: ListInput,
    request: Request,
    out: str | None = None,
    emit: str | None = None,
    address: str | None = None,
    say: Callable[[str], Any] = lambda line: None,
) -> dict[str, Any]:
    """The figures of the lists; writes cuts.parquet to `out` and truncated runs to `emit` as the blocks come.

    say: is told how far it is, in lines.
    """
    from cluster.truncation import list_blocks

    with ExitStack() as stack:
        work = Path(out or stack.enter_context(tempfile.TemporaryDirectory()))
        blocks = stack.enter_context(list_blocks(found.batches(), found.files, work / "lists", address))
        writers: list[CutWriter | RunWriter] = []
        if out:
            writers.append(stack.enter_context(CutWriter(Path(out))))
        if emit:
            writers.append(stack.enter_context(RunWriter(Path(emit), blocks)))

        def keep(table: pa.Table, plan: Plan) -> None:
            for writer in writers:
                writer.write(table, plan)

        figures = compare(blocks, found.coverage, request, keep=keep, show=Progress(found.n_lists, say)).figures
    return {**figures, "overlap": found.overlap}


class Progress:
    """Says how many lists a phase has done, at most every two seconds."""

    def __init__(self, total: int, say: Callable[[str], Any]) -> None:
        self._total = total
        self._say = say
        self._began = self._shown = time.monotonic()
        self._phase, self._since = "", self._began

    def __call__(self, phase: str, done: int) -> None:
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._since = phase, self._shown
        if now - self._shown >= SHOW_EVERY_S:
            self._shown = now
            left = (self._total - done) * (now - self._since) / done if done else 0.0
            self._say(f"[{now - self._began:6.1f} s] {phase}: {done}/{self._total} lists, ETA {max(0.0, left):.0f} s")


def _input(sources: Sequence[str], options: dict[str, Any]) -> ListInput:
    from engine.data import read_corpus
    from engine.score.truncation_tokens import CorpusTokens

    tokens = CorpusTokens(read_corpus(options["corpus"])) if options["corpus"] else None
    found = ListInput(tokens, options["min_grade"])
    for source in sources:
        found.add_source(source)
    judged = read_judgements(options["qrels"])
    found.add_runs(options["runs"], judged)
    if options["fit_runs"]:
        fitted = read_judgements(options["fit_qrels"]) if options["fit_qrels"] else judged
        found.add_runs(options["fit_runs"], fitted, fit=True)
    if not found.coverage:
        raise ConfigError("nothing to compare: give folders of `stopgap run`, or --run RANKER=FILE and --qrels FILE")
    return found


def _request(overrides: Sequence[str], fit_splits: Collection[str | None], options: dict[str, Any]) -> Request:
    names = [name.strip() for name in options["names"].split(",")] if options["names"] else None
    splits = frozenset({*options["fit"], *fit_splits})
    objective, max_kept = options["objective"], options["max_kept"]
    if max_kept is not None and not splits:
        raise ConfigError("--max-kept bounds what a fit chooses: name a split with --fit or a run with --fit-run")
    if splits and objective != "f1" and max_kept is None:
        raise ConfigError(f"--objective {objective} is best when everything is kept: bound it with --max-kept K")
    return Request(
        methods(names, overrides),
        depth=options["depth"],
        baseline=options["baseline"],
        reported=frozenset(options["reported"]) or None,
        fit=Fit(splits, objective, max_kept) if splits else None,
    )
