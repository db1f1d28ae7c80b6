"""What a run reads: its question set and its corpus."""

from __future__ import annotations

from pydantic import Field

from engine.config.node import Node, Positive


class QuestionsConfig(Node):
    """The question set: a local path, an fsspec URL, or `hf:<dataset id>`."""

    path: str
    format: str = Field("auto", description="auto or a name from engine.data.QUESTION_FORMATS")
    split: str | None = Field(None, description="keep only questions whose metadata.split equals this")
    limit: Positive | None = Field(None, description="use only the first N questions")


class CorpusConfig(Node):
    """The passages to search: a local path, an fsspec URL, or `hf:<dataset id>`."""

    path: str
    format: str = Field("auto", description="auto or a name from engine.data.CORPUS_FORMATS")
