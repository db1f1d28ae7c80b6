"""How good the ranked list of each question is, by the measures of information retrieval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from engine.records import Passage, Question
from engine.rows import row_to_question
from engine.score.arrow import Floats
from engine.score.evidence import gold_keys, key_of

CUTOFFS = (1, 2, 5, 10, 30, 100)
MRR = "mrr"
NDCG = "ndcg@10"

_COLUMNS = ("question_id", "question", "golden_answers", "supporting", "metadata", "status", "turns")


def retrieval_measures(depth: int) -> tuple[str, ...]:
    """Names of the measures of lists that are `depth` long: recall@k and complete@k for k up to it, mrr, ndcg@10."""
    cutoffs = [k for k in CUTOFFS if k <= depth]
    return (*(f"recall@{k}" for k in cutoffs), *(f"complete@{k}" for k in cutoffs), MRR, NDCG)


def retrieval_scores(batch: pa.RecordBatch, depth: int) -> dict[str, Floats]:
    """The measures of each row's first ranked list, over a batch of trace rows: name -> [rows] float in [0, 1].

    recall@k is the share of the question's gold passages among the first k hits, complete@k is 1 where all of them
    are, mrr is 1 / rank of the first, ndcg@10 weighs each by its grade in metadata.qrels where that is given and by 1
    elsewhere. A gold passage counts once, where it stands first. A search that found nothing scores 0; a question
    without gold evidence, or that ended in an error, NaN. Computed by trec_eval through ir_measures.
    """
    import ir_measures
    from ir_measures import RR, R, nDCG

    names = {str(R @ k): f"recall@{k}" for k in CUTOFFS if k <= depth} | {str(RR): MRR, str(nDCG @ 10): NDCG}
    scores = {name: np.full(batch.num_rows, np.nan) for name in retrieval_measures(depth)}
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for place, row in enumerate(batch.select(_COLUMNS).to_pylist()):
        question = row_to_question(row)
        grades = _grades(question)
        if grades and row["status"] == "ok":
            qrels[str(place)] = grades
            run[str(place)] = _ranked(question, row["turns"])
    for found in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names], qrels, run):
        scores[names[str(found.measure)]][int(found.query_id)] = found.value
    for k in CUTOFFS:
        if k <= depth:
            recall = scores[f"recall@{k}"]
            scores[f"complete@{k}"] = np.where(np.isnan(recall), np.nan, recall == 1.0)
    return scores


def _grades(question: Question) -> dict[str, int]:
    """Gold keys with their grades, at least 1 each."""
    judged = question.metadata.get("qrels")
    known = judged if isinstance(judged, Mapping) else {}
    grades = {key: known.get(key.removeprefix("id:")) for key in gold_keys(question)}
    return {key: max(1, grade) if isinstance(grade, int) else 1 for key, grade in grades.items()}


def _ranked(question: Question, turns: list[Mapping[str, Any]]) -> dict[str, float]:
    """Hits of the first search as scores that fall strictly with the rank, gold ones named by their key."""
    ranked: dict[str, float] = {}
    for rank, hit in enumerate(turns[0]["hits"] if turns else (), 1):
        key = key_of(question, Passage(hit["doc_id"], hit["title"], ""))
        ranked[str(rank) if key is None or key in ranked else key] = -float(rank)
    return ranked
