"""Extractive selection by sentence similarity, after RECOMP's extractive compressor (METHODS A9).

A sentence's score is its best cosine with the question or with a gap, so that a sentence about the missing
entity counts although the question does not name it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.config import EmbeddingConfig
from engine.records import Evidence, Gap


def probes(question: str, gaps: Sequence[Gap]) -> list[str]:
    """The texts that sentences are compared with: the question, then each gap as a phrase."""
    phrases = [f"{gap.target} {gap.slot}".strip() or gap.description for gap in gaps]
    return [question, *(phrase for phrase in phrases if phrase)]


def sentence_text(item: Evidence) -> str:
    """What is encoded for a sentence: its title in front, since sentences often leave their subject out."""
    return f"{item.title}. {item.text}"


def select(
    sentences: Sequence[Evidence],
    sentence_vectors: npt.NDArray[np.float32],
    probe_vectors: npt.NDArray[np.float32],
    config: EmbeddingConfig,
) -> list[Evidence]:
    """The max_sentences most similar sentences at or above min_similarity, in passage order.

    sentence_vectors: [n, dim], probe_vectors: [p, dim], unit rows. Ties go to the earlier sentence.
    """
    if not sentences:
        return []
    similarity = (sentence_vectors @ probe_vectors.T).max(axis=1)
    order = np.argsort(-similarity, kind="stable")[: config.max_sentences]
    return [sentences[i] for i in sorted(order) if similarity[i] >= config.min_similarity]
