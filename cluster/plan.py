"""The shard plan: a question set, streamed once, cut into shards with content-addressed ids.

Questions go to one Arrow file with one record batch per shard, so that a runner reads just its own and the driver
never holds the set. (Parquet keeps statistics of every row group in the writer's memory: 46 MB for 100,000 questions.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from cluster.store import Store
from engine.errors import DataError
from engine.records import Question
from engine.rows import question_to_row, row_to_question
from engine.schema import QUESTIONS

QUESTIONS_FILE = "plan/questions.arrow"
SHARDS_FILE = "plan/shards.parquet"
SHARDS = pa.schema([("shard", pa.int64()), ("content", pa.string()), ("questions", pa.int32())])


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned question set: its digest, size, and the content digest of each shard's question ids."""

    digest: str
    n_questions: int
    contents: tuple[str, ...]

    def shard_id(self, run_key: str, shard: int) -> str:
        """The id that a shard's files carry: the same for every attempt at the same work."""
        return hashlib.sha256(f"{run_key}\0{self.contents[shard]}".encode()).hexdigest()[:32]


def write_plan(questions: Iterable[Question], shard_size: int, folder: Path) -> Plan:
    """Streams the questions into folder/plan/ and returns the plan.

    The digest covers every field of every question in order. Raises DataError where there is no question at all,
    and whatever the reader raises.
    """
    (folder / "plan").mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    contents: list[str] = []
    sizes: list[int] = []
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(folder / QUESTIONS_FILE, QUESTIONS, options=options) as writer:
        for shard in _batches(questions, shard_size):
            rows = [question_to_row(question) for question in shard]
            for row in rows:
                digest.update(json.dumps(row, ensure_ascii=False, sort_keys=True).encode())
                digest.update(b"\n")
            ids = json.dumps([row["question_id"] for row in rows], ensure_ascii=False)
            contents.append(hashlib.sha256(ids.encode()).hexdigest()[:32])
            sizes.append(len(rows))
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=QUESTIONS))
    if not contents:
        raise DataError("the question set is empty after split and limit; nothing to run")
    table = pa.table([range(len(contents)), contents, sizes], schema=SHARDS)
    pq.write_table(table, folder / SHARDS_FILE, compression="zstd")
    return Plan(digest.hexdigest(), sum(sizes), tuple(contents))


def read_shard(store: Store, shard: int) -> list[Question]:
    """The questions of one shard of a stored plan, in order."""
    with store.open(QUESTIONS_FILE) as file:
        rows: Sequence[dict[str, Any]] = pa.ipc.open_file(file).get_batch(shard).to_pylist()
    return [row_to_question(row) for row in rows]


def _batches(questions: Iterable[Question], size: int) -> Iterator[list[Question]]:
    source = iter(questions)
    while batch := list(islice(source, size)):
        yield batch
