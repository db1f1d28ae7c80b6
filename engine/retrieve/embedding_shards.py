"""The embeddings of a corpus as files made one at a time, each once, by whichever processes there are."""

from __future__ import annotations

import hashlib
import io
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from engine.config import EncoderConfig
from engine.encode import Encoder
from engine.errors import BackendError, RunError
from engine.records import Passage
from engine.retrieve.passage_store import BLOCK, PassageStore, read_block, write_passages
from engine.services import BACKENDS

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a shard is whole: its vectors, their dimensions, and the SHA-256 of its file."""

    rows: int
    dim: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shards:
    """A folder of embedding shards, shard i being the vectors of block i of its passages.

    The folder belongs to one corpus and one encoder, and lies on a file system that every process of the job sees.
    Files are linked into place whole and first come, first served, so whatever is killed, and however often a shard
    is made, it changes no file that is there. Only a receipt says that a shard is done.
    """

    folder: Path
    encoder: EncoderConfig
    layout: str
    dtype: str

    @property
    def passages(self) -> Path:
        return self.folder / "passages.arrow"

    def store_passages(
        self, passages: Iterable[Passage], block: int = BLOCK, tell: Callable[[int], None] = lambda stored: None
    ) -> None:
        """Write the passages, unless an earlier job did."""
        if not self.passages.exists():
            self._publish(self.passages, lambda file: write_passages(passages, file, block, tell))

    def missing(self) -> list[int]:
        """The shards without a receipt, in order."""
        blocks = PassageStore(self.passages).blocks
        return [number for number in range(blocks) if not self._receipt_path(number).exists()]

    def finished(self) -> int:
        """Number of shards that have a receipt."""
        return len(list(self.folder.glob("*.json")))

    def receipt(self, number: int) -> Receipt:
        """The receipt of a finished shard."""
        return Receipt(**json.loads(self._receipt_path(number).read_bytes()))

    def make(self, number: int, encoder: Encoder) -> None:
        """Embed one shard and write it, then its receipt; a shard that is there is left as it is.

        Raises BackendError where the encoder gives a vector that is not finite.
        """
        if self._receipt_path(number).exists():
            return
        path = self._path(number)
        if not path.exists():  # without its receipt only where a process died between the two
            vectors = self._embedded(read_block(self.passages, number), encoder)
            self._publish(path, lambda file: np.save(file, vectors))
        data = path.read_bytes()
        rows, dim = np.load(io.BytesIO(data)).shape
        receipt = {"rows": rows, "dim": dim, "sha256": hashlib.sha256(data).hexdigest()}
        self._publish(self._receipt_path(number), lambda file: file.write(json.dumps(receipt).encode()))

    def read(self, number: int) -> Vectors:
        """[rows, dim] vectors of a finished shard. Raises RunError for one that is not as its receipt says."""
        path = self._path(number)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        if hashlib.sha256(data).hexdigest() != self.receipt(number).sha256:
            raise RunError(f"the embeddings in {path} are not as they were written: delete {self.folder}, build again")
        return np.asarray(np.load(io.BytesIO(data)), dtype=np.float32)

    def _embedded(self, passages: Sequence[Passage], encoder: Encoder) -> npt.NDArray[np.floating]:
        texts = [passage_text(passage, self.layout) for passage in passages]
        vectors = encoder.encode(texts, kind="passage")
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(broken):
            raise BackendError(f"the encoder's vector of passage {passages[broken[0]].id} is not finite")
        return vectors.astype(self.dtype)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npy"

    def _receipt_path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.json"

    def _publish(self, path: Path, write: Callable[[IO[bytes]], object]) -> None:
        """Write a new file whole; where the name is taken by then, the file that is there stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f"{uuid.uuid4().hex}.tmp"
        try:
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


Embed = Callable[[Shards, Sequence[int]], Iterator[int]]
"""Makes the named shards and yields each one's number when it is done, in any order."""


def embed_here(shards: Shards, missing: Sequence[int]) -> Iterator[int]:
    """Make shards one after the other in this process: for small corpora and notebooks."""
    encoder = open_encoder(shards.encoder)
    for number in missing:
        shards.make(number, encoder)
        yield number


def open_encoder(config: EncoderConfig) -> Encoder:
    """The encoder of a configuration, loaded into this process."""
    module, name = BACKENDS[config.kind].split(":")
    encoder: Encoder = getattr(import_module(module), name)(config)
    return encoder


def passage_text(passage: Passage, layout: str) -> str:
    """What is encoded of a passage, before the encoder's prefix: "TITLE TEXT", or METHODS A4's form for E5."""
    if layout == "title_context":
        return f"title: {passage.title}, context: {passage.text}"
    return f"{passage.title} {passage.text}".strip()
