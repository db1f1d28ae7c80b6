"""What `stopgap truncate` reads: run files with judgements, run folders, and tables of lists."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cluster.rundir import RunDir
from engine.data.parquet_run import read_parquet_run
from engine.data.qrels import Qrels, read_qrels
from engine.data.ranked_list import RankedList
from engine.data.source import folder_names, is_folder
from engine.data.trec import read_run
from engine.errors import ConfigError
from engine.score.truncation_blocks import file_coverage
from engine.score.truncation_lists import Cell, Coverages, Tokens, run_lists, trace_lists

_NAME = re.compile(r"(?:(?P<dataset>[\w.-]+)/)?(?P<name>[\w.-]+)=(?P<path>.+)")
_SPLIT = re.compile(r"(?P<split>.+)\.tsv(?:\.gz)?")
_TRACE_COLUMNS = ["question_id", "question", "golden_answers", "supporting", "metadata", "turns"]


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgements of a data set; split is each query's, where they come in splits."""

    qrels: Qrels
    split: dict[str, str]


class ListInput:
    """Ranked lists from any number of sources. coverage and overlap are complete once batches() is read.

    coverage: the cells with the splits found in them. files: Parquet files of lists, which batches() leaves out.
    fit_splits: the splits of run files that parameters are to be fitted on.
    """

    def __init__(self, tokens: Tokens | None = None, min_grade: int = 1) -> None:
        self.coverage: dict[Cell, Coverages] = {}
        self.files: list[str] = []
        self.fit_splits: set[str | None] = set()
        self._tokens: Tokens = tokens or (lambda doc_ids: None)
        self._min_grade = min_grade
        self._readers: list[tuple[Cell, Callable[[], Iterator[pa.RecordBatch | Coverages]]]] = []
        self._queries: dict[bool, set[tuple[Cell, str]]] = {False: set(), True: set()}

    def add_source(self, source: str) -> None:
        """A run folder, a Parquet file of lists, or a folder of such files."""
        files = _list_files(source)
        if not files:
            self._add_folder(_run_folder(source))
        for cell, coverage in file_coverage(files).items():
            self._new_cell(cell)
            self.coverage[cell] |= coverage
        self.files += files

    def add_runs(self, runs: Sequence[str], judged: dict[str, Judged], *, fit: bool = False) -> None:
        """Run files as `[DATASET/]RANKER=FILE`; their split is that of the judgements, or the file itself.

        fit: the runs are there to fit parameters on.
        """
        for text in runs:
            dataset, ranker, path = _named(text)
            if dataset is None and len(judged) == 1:
                dataset = next(iter(judged))
            if dataset is None or dataset not in judged:
                raise ConfigError(
                    f"--run {text}: judgements of its data set are needed, --qrels gives {', '.join(judged) or 'none'};"
                    f" write --run DATASET/{ranker}={path} --qrels DATASET=FILE"
                )
            cell = (dataset, ranker)
            if not fit:
                self._new_cell(cell)
            elif cell not in self.coverage:
                raise ConfigError(f"--fit-run {text}: no --run of ranker '{ranker}' on '{dataset}' to report on")
            self._readers.append((cell, self._run_reader(cell, path, judged[dataset], fit)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The lists of all sources but the Parquet files."""
        for cell, read in self._readers:
            for item in read():
                if isinstance(item, dict):
                    self.coverage[cell] |= item
                else:
                    yield item

    @property
    def n_lists(self) -> int:
        """How many lists there are."""
        return sum(counts.lists for coverage in self.coverage.values() for counts in coverage.values())

    @property
    def overlap(self) -> int:
        """Queries of run files whose ranker is fitted on them and reported on them, too."""
        return len(self._queries[False] & self._queries[True])

    def _add_folder(self, run: RunDir) -> None:
        cell = (run.name, run.config().retriever.kind)
        self._new_cell(cell)

        def read() -> Iterator[pa.RecordBatch | Coverages]:
            rows = (row for batch in run.batches() for row in batch.select(_TRACE_COLUMNS).to_pylist())
            return trace_lists(rows, cell, tokens=self._tokens)

        self._readers.append((cell, read))

    def _run_reader(
        self, cell: Cell, path: str, judged: Judged, fit: bool
    ) -> Callable[[], Iterator[pa.RecordBatch | Coverages]]:
        by_file = fit or not judged.split
        if fit:
            self.fit_splits.add(path)

        def split_of(query: str) -> str | None:
            return path if by_file else judged.split.get(query)

        def lists() -> Iterator[RankedList]:
            for item in read_parquet_run(path) if path.endswith(".parquet") else read_run(path):
                if self.fit_splits:
                    self._queries[fit].add((cell, item.query_id))
                yield item

        return lambda: run_lists(lists(), judged.qrels, cell, split_of, min_grade=self._min_grade, tokens=self._tokens)

    def _new_cell(self, cell: Cell) -> None:
        if cell in self.coverage:
            raise ConfigError(f"ranker '{cell[1]}' on '{cell[0]}' is given twice; give each a name of its own")
        self.coverage[cell] = {}


def read_judgements(texts: Iterable[str]) -> dict[str, Judged]:
    """The judgements of `[DATASET=]PATH` by data set: a qrels file, or a BEIR folder with its qrels by split.

    A data set without a name is called after its file or folder. Raises ConfigError and DataError.
    """
    found: dict[str, Judged] = {}
    for text in texts:
        named = _NAME.fullmatch(text)
        path = named["path"] if named else text
        dataset = named["name"] if named else _stem(path)
        if dataset in found:
            raise ConfigError(f"--qrels {text}: the judgements of '{dataset}' are given twice")
        found[dataset] = _beir_judgements(path) if is_folder(path) else Judged(read_qrels(path), {})
    return found


def _beir_judgements(path: str) -> Judged:
    folder = posixpath.join(path, "qrels") if is_folder(posixpath.join(path, "qrels")) else path
    files = {match["split"]: name for name in folder_names(folder) if (match := _SPLIT.fullmatch(name))}
    if not files:
        raise ConfigError(f"{path}: a BEIR folder with qrels/<split>.tsv was needed, found {folder_names(path)[:5]}")
    qrels: Qrels = {}
    splits: dict[str, str] = {}
    for split, name in sorted(files.items()):
        for query, grades in read_qrels(posixpath.join(folder, name)).items():
            qrels.setdefault(query, {}).update(grades)
            splits.setdefault(query, split)
    return Judged(qrels, splits)


def _named(text: str) -> tuple[str | None, str, str]:
    """`[DATASET/]RANKER=FILE` as (data set, ranker, file); a bare file is called after itself."""
    named = _NAME.fullmatch(text)
    return (named["dataset"], named["name"], named["path"]) if named else (None, _stem(text), text)


def _stem(path: str) -> str:
    """The name of a file or folder up to its first dot."""
    return posixpath.basename(path.rstrip("/")).partition(".")[0] or path


def _list_files(source: str) -> list[str]:
    """The Parquet files of lists that a source stands for; none if it is something else."""
    path = Path(source)
    if source.endswith(".parquet"):
        return [source]
    return sorted(str(file) for file in path.glob("lists-*.parquet")) if path.is_dir() else []


def _run_folder(source: str) -> RunDir:
    run = RunDir(source)
    if is_folder(source) and "qrels" in folder_names(source) and not run.store.exists("manifest.json"):
        raise ConfigError(
            f"{source} is a BEIR folder: it has judgements but no ranked lists; give a run of its queries, "
            f"`--run NAME=FILE --qrels {source}`"
        )
    if "://" not in source and not os.path.isdir(source):
        raise ConfigError(
            f"{source}: a run folder or a Parquet file of lists was needed; a run file is given as --run NAME={source}"
        )
    run.require()
    return run
