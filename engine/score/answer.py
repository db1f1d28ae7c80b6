"""Answer scores: exact match, token F1 and substring match against the gold answers."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


class Overlap(NamedTuple):
    """Token precision, recall and F1 of a prediction against one gold answer, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


_NOTHING = Overlap(0.0, 0.0, 0.0)
_EVERYTHING = Overlap(1.0, 1.0, 1.0)


def normalise(text: str) -> str:
    """The text as answers are compared: lower case, no ASCII punctuation, no articles, single spaces.

    NFC is applied first, so that composed and decomposed accents are equal; the rest is SQuAD's normalisation.
    """
    bare = unicodedata.normalize("NFC", text).lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(prediction: str, golds: Sequence[str]) -> float:
    """1.0 if the normalised prediction equals any normalised gold answer, else 0.0 (also for no golds)."""
    answer = normalise(prediction)
    return float(any(answer == normalise(gold) for gold in golds))


def token_overlap(prediction: str, golds: Sequence[str]) -> Overlap:
    """Overlap with the gold answer that gives the highest F1; all zero for no golds.

    An empty prediction against an empty gold scores 1. If either side is exactly yes, no or noanswer and the
    two differ, the overlap is 0, so "no" earns nothing inside a longer gold. Source: METHODS A7; the closed-answer
    rule is HotpotQA's.
    """
    answer = normalise(prediction)
    return max((_overlap(answer, normalise(gold)) for gold in golds), key=lambda o: o.f1, default=_NOTHING)


def f1(prediction: str, golds: Sequence[str]) -> float:
    """The F1 of token_overlap. Never below exact_match of the same arguments."""
    return token_overlap(prediction, golds).f1


def substring_match(prediction: str, golds: Sequence[str]) -> float:
    """1.0 if any normalised gold answer occurs anywhere in the normalised prediction, else 0.0.

    This is the looser measure that some papers print as EM or accuracy; words are not kept apart ("no" occurs in
    "unknown"), as there. A gold that normalises to nothing matches an empty prediction only.
    """
    answer = normalise(prediction)
    normalised = [normalise(gold) for gold in golds]
    return float(any(gold in answer if gold else not answer for gold in normalised))


def _overlap(answer: str, gold: str) -> Overlap:
    if answer == gold:
        return _EVERYTHING
    if answer in _CLOSED or gold in _CLOSED:
        return _NOTHING
    ours, theirs = answer.split(), gold.split()
    shared = (Counter(ours) & Counter(theirs)).total()
    if shared == 0:
        return _NOTHING
    precision, recall = shared / len(ours), shared / len(theirs)
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))
