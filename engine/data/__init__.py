"""Readers of question sets and corpora: streaming, checked, one file per format."""

from engine.data.digest import CorpusDigest, corpus_digest
from engine.data.formats import CORPUS_FORMATS, QUESTION_FORMATS
from engine.data.read import read_corpus, read_questions
from engine.data.unique import unique_ids

__all__ = [
    "CORPUS_FORMATS",
    "QUESTION_FORMATS",
    "CorpusDigest",
    "corpus_digest",
    "read_corpus",
    "read_questions",
    "unique_ids",
]
