"""The oracle judge: reads the gold evidence, so that a run with it is the upper bound for judge and gap alike."""

from __future__ import annotations

from collections.abc import Set

from engine.records import Category, Gap, Question, Verdict
from engine.score.evidence import fact_keys, gold_keys


def oracle_verdict(question: Question, retrieved: Set[str]) -> Verdict:
    """Sufficient once every gold passage has been read; else one gap per missing passage, in hop order.

    retrieved: gold keys read so far. A question without gold evidence is sufficient at once.
    """
    titles = {key: fact.title for fact, key in zip(question.supporting, fact_keys(question), strict=True)}
    gaps = tuple(
        Gap(Category.EVIDENCE_SPAN, titles[key], "", titles[key]) for key in gold_keys(question) if key not in retrieved
    )
    return Verdict(sufficient=not gaps, gaps=gaps)
