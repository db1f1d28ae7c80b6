"""The identity of a corpus: what an index was built from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from engine.data.beir import corpus_file
from engine.data.formats import CORPUS_FORMATS, RECORD_PER_PASSAGE, corpus_format
from engine.data.hub import is_hub
from engine.data.jsonstream import starts_array
from engine.data.source import open_bytes

_BATCH = 1 << 20


@dataclass(frozen=True, slots=True)
class CorpusDigest:
    """A corpus's content and size. Equal digests mean the same passages in the same order."""

    sha256: str
    n_passages: int


def corpus_digest(path: str, format: str = "auto") -> CorpusDigest:
    """The digest and passage count of a corpus, such that a deleted or moved line changes it.

    A file with one passage per line is not parsed: sha256 is over its decompressed bytes (without a byte order
    mark), so packing the file changes nothing, and n_passages counts the lines that are not blank. For a JSON
    array, the original data sets and `hf:` paths sha256 is over the passages read, one JSON line [id, title, text,
    sentences] each; ids are not checked for duplicates. Raises DataError as `read_corpus` does.
    """
    name = corpus_format(path, format)
    if name in RECORD_PER_PASSAGE and not is_hub(path):
        digest = _of_lines(corpus_file(path))
        if digest is not None:
            return digest
    return _of_passages(path, name)


def _of_lines(file: str) -> CorpusDigest | None:
    sha256, count = hashlib.sha256(), 0
    with open_bytes(file) as stream:
        if starts_array(stream):
            return None
        while lines := stream.readlines(_BATCH):
            sha256.update(b"".join(lines))
            count += len(lines) - sum(map(bytes.isspace, lines))
    return CorpusDigest(sha256.hexdigest(), count)


def _of_passages(path: str, name: str) -> CorpusDigest:
    sha256, count = hashlib.sha256(), 0
    for _, passage in CORPUS_FORMATS[name](path):
        row = [passage.id, passage.title, passage.text, list(passage.sentences)]
        sha256.update(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        count += 1
    return CorpusDigest(sha256.hexdigest(), count)
