"""Tokens of a corpus's texts by document id, for what a cut list costs to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.evidence.memory import estimate_tokens
from engine.records import Passage


class CorpusTokens:
    """Tokens of each passage's title and text, as `estimate_tokens` counts them.

    Holds about 40 bytes a passage.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        ids, tokens = [], []
        for passage in passages:
            ids.append(passage.id)
            tokens.append(estimate_tokens(passage.title) + estimate_tokens(passage.text))
        self._ids = pa.array(ids, pa.string())
        self._tokens = np.array(tokens, dtype=np.int64)

    def __call__(self, doc_ids: Sequence[str]) -> list[int] | None:
        """The tokens of each document; None where the corpus lacks one of them."""
        places = pc.index_in(pa.array(doc_ids, pa.string()), value_set=self._ids)
        if places.null_count:
            return None
        found: list[int] = self._tokens[places.to_numpy()].tolist()
        return found
