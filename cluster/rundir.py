"""A run's folder: shards committed exactly once, receipts that prove it, and readers that trust only those."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cluster.store import Store, open_store
from engine.config import ExperimentConfig
from engine.config_file import parse_config
from engine.errors import DataError
from engine.schema import TIMINGS, TRACES


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a shard is complete: where its rows are, how many, how many of them errors, and their digest."""

    shard: int
    shard_id: str
    rows: int
    errors: int
    digest: str

    @property
    def traces(self) -> str:
        return f"traces/{self.shard_id}.parquet"

    @property
    def timings(self) -> str:
        return f"timings/{self.shard_id}.parquet"


class RunDir:
    """The folder of one run, by its location."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.store: Store = open_store(location)

    @property
    def name(self) -> str:
        return self.location.rstrip("/").rpartition("/")[2]

    def commit(
        self, shard: int, shard_id: str, rows: Sequence[dict[str, Any]], timings: Sequence[dict[str, Any]]
    ) -> Receipt:
        """Publishes a shard's rows and then its receipt; a later attempt changes nothing."""
        draft = Receipt(shard, shard_id, len(rows), 0, "")
        table = pa.Table.from_pylist(list(rows), schema=TRACES)
        if not self.store.publish(draft.traces, _parquet(table)):
            table = pq.read_table(io.BytesIO(self.store.read(draft.traces)))
        self.store.publish(draft.timings, _parquet(pa.Table.from_pylist(list(timings), schema=TIMINGS)))
        published = table.to_pylist()
        errors = sum(row["status"] == "error" for row in published)
        receipt = Receipt(shard, shard_id, len(published), errors, rows_digest(published))
        self.store.publish(_receipt_name(shard_id), json.dumps(asdict(receipt)).encode())
        return receipt

    def is_committed(self, shard_id: str) -> bool:
        """Whether the shard has its receipt."""
        return self.store.exists(_receipt_name(shard_id))

    def receipts(self) -> dict[str, Receipt]:
        """Receipts by shard id."""
        found = (Receipt(**json.loads(self.store.read(name))) for name in self.store.names("receipts"))
        return {receipt.shard_id: receipt for receipt in found}

    def ordered(self) -> list[Receipt]:
        """Receipts in shard order."""
        return sorted(self.receipts().values(), key=lambda receipt: receipt.shard)

    def digest(self) -> str:
        """One digest over all committed traces, in shard order; wall-clock figures have no part in it."""
        return hashlib.sha256("".join(receipt.digest for receipt in self.ordered()).encode()).hexdigest()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Committed traces, a shard at a time, in shard order."""
        for receipt in self.ordered():
            with self.store.open(receipt.traces) as file:
                yield from pq.ParquetFile(file).iter_batches()

    def timings(self) -> pa.Table:
        """Wall-clock figures of all committed questions."""
        tables = [pq.read_table(io.BytesIO(self.store.read(receipt.timings))) for receipt in self.ordered()]
        return pa.concat_tables(tables) if tables else TIMINGS.empty_table()

    def config(self) -> ExperimentConfig:
        """The resolved configuration the run was started with."""
        self.require()
        return parse_config(self.store.read("config.yaml").decode(), self.store.where("config.yaml"))

    def manifest(self) -> dict[str, Any]:
        """Versions, hashes, seeds and hardware of the run."""
        self.require()
        manifest: dict[str, Any] = json.loads(self.store.read("manifest.json"))
        return manifest

    def require(self) -> None:
        """Raises DataError unless this is a run's folder."""
        if not self.store.exists("manifest.json"):
            raise DataError(
                f"{self.location} is not a run: it holds no manifest.json; name a folder made by `stopgap run`"
            )


def _receipt_name(shard_id: str) -> str:
    return f"receipts/{shard_id}.json"


def rows_digest(rows: Sequence[dict[str, Any]]) -> str:
    """A digest of trace rows by content, whatever the file format's own metadata."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, ensure_ascii=False, sort_keys=True).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
