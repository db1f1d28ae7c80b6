"""Score threshold: keep the hits that score at least so much."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.truncate.ranked import Counts, Scores, ranked
from engine.truncate.settings import Settings


class ScoreThreshold(Settings):
    """The lowest score that is kept, on the retriever's own scale."""

    kind: Literal["score_threshold"] = "score_threshold"
    threshold: Annotated[float, Field(allow_inf_nan=False)]


def score_threshold(scores: Scores, lengths: Counts, *, threshold: float) -> Counts:
    """Number of leading hits to keep per ranked list: those with score >= threshold, which may be none.

    scores: [batch, L] float. lengths: [batch] int. Lists are read as by `ranked`. Returns [batch] int64; an empty list
    keeps 0. Raises ValueError for a threshold that is not finite. Source: LlamaIndex and LangChain, METHODS D5.
    """
    threshold = ScoreThreshold.checked(threshold=threshold).threshold
    lists = ranked(scores, lengths)
    kept: Counts = ((lists.scores >= threshold) & lists.inside).sum(axis=1)
    return kept
