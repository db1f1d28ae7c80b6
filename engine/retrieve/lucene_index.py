"""Building a Lucene index directory: passages are streamed to files, and a process of its own indexes them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from engine.config import Bm25Config
from engine.errors import DataError, RunError
from engine.records import Passage
from engine.retrieve import fingerprint, jvm
from engine.retrieve.fingerprint import CorpusIdentity, Fingerprint, Recipe
from engine.retrieve.index_folder import new_index
from engine.retrieve.lucene_indexer import Job, read_message
from engine.retrieve.stored_passage import passage_to_json

ANALYZER = "anserini-english-porter"
"""Anserini's DefaultEnglishAnalyzer: standard tokens, lower case, English stop words, Porter stems."""

PART = 5_000
"""Passages per file: a file is what one indexing thread takes at a time, and the step of progress."""

Progress = Callable[[str, int, int], None]
"""Told (phase, passages done, passages in all), where phase is "write" and then "index"."""


def lucene_recipe() -> Recipe:
    """How a BM25 index is made. k1 and b are not in it: they act at search time only."""
    return Recipe(kind="bm25", model=ANALYZER, build={"contents": "title text"})


def build_lucene(
    passages: Iterable[Passage],
    index_dir: Path,
    config: Bm25Config,
    corpus: CorpusIdentity,
    progress: Progress | None = None,
) -> Fingerprint:
    """Build the index directory of a corpus, whole or not at all, and return its fingerprint.

    passages: streamed once, never held; ids unique. corpus: their digest and number, which end up in the
    fingerprint. A passage without text is counted and can never be found. config gives threads, Java heap and the
    corpus's name. Raises IndexMismatch where index_dir is there already, PreflightError without a usable Java or heap,
    DataError where passages and corpus differ in number or an id occurs twice, RunError where indexing fails.
    """
    java = jvm.java_version()
    jvm.check_heap(config.heap)
    tell = progress or (lambda phase, done, total: None)
    with new_index(index_dir.absolute()) as (index, scratch):
        n_passages = _write_parts(passages, scratch, corpus.n_passages, tell)
        if n_passages != corpus.n_passages:
            raise DataError(
                f"{config.corpus.path} gave {n_passages} passages, but was counted to hold {corpus.n_passages}: "
                "it changed in between, so start again"
            )
        job = Job(str(scratch), str(index), config.threads, config.heap)
        counts = _run_indexer(job, n_passages, tell)
        _check_counts(counts, n_passages, config.corpus.path)
        made = fingerprint.describe(
            index,
            lucene_recipe(),
            corpus,
            config.corpus.path,
            n_empty=counts["empty"],
            versions={"anserini": jvm.anserini_version()},
            environment={"java": java.version},
        )
        fingerprint.write(made, index)
    return made


def _write_parts(passages: Iterable[Passage], folder: Path, total: int, tell: Progress) -> int:
    count = 0
    with ExitStack() as files:
        for passage in passages:
            if count % PART == 0:
                tell("write", count, total)
                files.close()
                name = f"{count // PART:06d}.jsonl"
                part = files.enter_context((folder / name).open("w", encoding="ascii", newline="\n"))
            part.write(passage_to_json(passage) + "\n")
            count += 1
    tell("write", count, total)
    return count


def _check_counts(counts: dict[str, int], n_passages: int, corpus: str) -> None:
    accounted = counts["indexed"] + counts["empty"]
    if accounted != n_passages or counts["in_index"] != counts["indexed"]:
        raise RunError(
            f"Lucene took {accounted} of the {n_passages} passages of {corpus} ({counts}): "
            "look at disk space and at the heap, then build again"
        )
    twice = counts["indexed"] - counts["ids"]
    if twice:
        raise DataError(f"{corpus}: {twice} passages have an id that occurred before: ids must be unique")


def _run_indexer(job: Job, total: int, tell: Progress) -> dict[str, int]:
    """Index in a process of its own, so that no Java starts in the caller's, and return its counts."""
    command = [sys.executable, "-m", "engine.retrieve.lucene_indexer", json.dumps(asdict(job))]
    lines: deque[str] = deque(maxlen=200)
    counts: dict[str, int] | None = None
    tell("index", 0, total)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        try:
            for line in run.stdout or ():
                message = read_message(line)
                if message is None:
                    lines.append(line)
                elif "done" in message:
                    tell("index", message["done"], total)
                else:
                    counts = message
        except BaseException:
            run.kill()
            raise
    if counts is None:
        raise RunError(f"the Lucene indexer failed (exit code {run.returncode}): {_last_meaningful(lines)}")
    tell("index", total, total)
    return counts


def _last_meaningful(lines: Iterable[str]) -> str:
    """The last line of a process's output that is no stack frame (those are indented), warning or blank."""
    kept = [line.strip() for line in lines if line.strip() and not line[0].isspace() and "WARNING" not in line]
    return kept[-1] if kept else "it said nothing"
