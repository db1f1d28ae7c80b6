"""What each figure is called on paper, and what it means."""

from __future__ import annotations

from typing import NamedTuple

from engine.score.retrieval import CUTOFFS, MRR, NDCG


class Label(NamedTuple):
    """A short name and a one-sentence definition."""

    name: str
    meaning: str


METRIC_LABELS = {
    "em": Label("Exact match", "The normalised answer equals a gold answer."),
    "f1": Label("Answer F1", "Token overlap with the closest gold answer; yes/no answers must be equal."),
    "substring_match": Label("Substring match", "A gold answer occurs inside the answer. Looser than EM; not EM."),
    "sp_em": Label("Support EM", "The kept sentences are exactly the gold sentences."),
    "sp_precision": Label("Support precision", "Share of kept sentences that are gold."),
    "sp_recall": Label("Support recall", "Share of gold sentences that were kept."),
    "sp_f1": Label("Support F1", "Harmonic mean of support precision and recall."),
    "joint_em": Label("Joint EM", "Answer and support both exact."),
    "joint_f1": Label("Joint F1", "F1 of the products of answer and support precision and recall (HotpotQA)."),
    "retrieval_recall": Label("Gold passages read", "Share of gold passages above the cut in any turn."),
    "retrieval_complete": Label("All gold read", "Every gold passage was read."),
    "evidence_recall": Label("Gold passages kept", "Share of gold passages with at least one kept sentence."),
    "compression_ratio": Label("Compression", "Characters kept as evidence per character read; lower keeps less."),
    **{f"recall@{k}": Label(f"Recall@{k}", f"Share of gold passages among the first {k} hits.") for k in CUTOFFS},
    **{f"complete@{k}": Label(f"Complete@{k}", f"All gold passages are among the first {k} hits.") for k in CUTOFFS},
    MRR: Label("MRR", "One over the rank of the first gold passage."),
    NDCG: Label("nDCG@10", "Gold passages among the first 10 hits, earlier ones counting more."),
}
"""Scores of answers and evidence, then those of ranked lists, in the order in which they are shown."""

COST_LABELS = {
    "retrievals": "Retrievals per question",
    "calls": "Model calls per question",
    "tokens": "Tokens per question",
    "money_per_1000": "Cost of 1,000 questions",
}
"""Model calls, tokens and cost are those of all models, the judge included."""

REASON_LABELS = {
    "sufficient": "judged sufficient",
    "answered": "answered by itself",
    "budget": "budget spent",
    "empty_retrieval": "nothing found",
    "repeated_query": "only repeated queries left",
    "error": "error",
}
"""Stop reasons in the order in which charts stack them."""

ACTION_LABELS = {"search": "search", "answer": "answer", "invalid": "neither a search nor an answer"}
"""What a loop does next, as in engine.records.Action."""

POLICY_LABELS = {
    "native": Label("Native", "Left to itself: nothing is stopped early."),
    "repeat": Label("Answer repeats", "Stops where the answer is the one of the state before; pays the probe there."),
    "oracle": Label("Oracle", "Stops at the earliest safe state, told by the truth: a bound, not a policy."),
}
"""Policies that are replayed on every run with recorded states."""
