"""LLM summarisation of a turn's passages: the compression baseline of S2G-RAG, which is not verbatim."""

from __future__ import annotations

from collections.abc import Sequence

from engine.config import SummaryConfig
from engine.evidence.memory import render
from engine.generate import GenerationRequest
from engine.records import Evidence, Gap, Hit

SYSTEM = (
    "Summarise what the passages say that helps to answer the question or fills a missing fact. "
    "Two or three short sentences with the exact names and numbers. Use the passages alone; "
    "reply with the word none if nothing helps."
)


def summary_request(
    question: str, gaps: Sequence[Gap], hits: Sequence[Hit], config: SummaryConfig, max_tokens: int
) -> GenerationRequest:
    """The request for one summary of the hits, which are shown within max_tokens, best first."""
    passages, _ = render([Evidence(h.doc_id, h.title, None, h.passage.text, h.rank, 0) for h in hits], max_tokens)
    missing = "; ".join(f"{gap.target} {gap.slot}".strip() for gap in gaps) or "none named"
    return GenerationRequest(
        role="extractor",
        messages=(
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"QUESTION\n{question}\n\nMISSING\n{missing}\n\nPASSAGES\n{passages}"},
        ),
        max_tokens=config.max_tokens,
    )


def read_summary(text: str, hits: Sequence[Hit], turn: int) -> list[Evidence]:
    """The summary as one span, under the ids and titles of every passage it was made from."""
    summary = " ".join(text.split())
    if not summary or summary.strip(" .").lower() == "none":
        return []
    ids = "+".join(hit.doc_id for hit in hits)
    titles = " / ".join(hit.title for hit in hits)
    return [Evidence(ids, titles, None, summary, hits[0].rank, turn)]
