"""BM25 over the shared HotpotQA passages: whole passages come back, and the gold ones near the top."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import lucene_worker
import pytest

from engine.records import Passage

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "hotpotqa"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared HotpotQA data is not at {SHARED}"),
]


def test_gold_passages_are_found(java_process, make_index):
    with gzip.open(SHARED / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    passages = {
        row["id"]: Passage(row["id"], row["title"], row["text"], tuple(row.get("sentences") or ())) for row in rows
    }
    questions = [json.loads(line) for line in (SHARED / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    config = make_index(list(passages.values()))
    assert java_process.submit(lucene_worker.checked, config, list(passages.values())[::100]).result() == []

    answers = java_process.submit(lucene_worker.search, config, [row["question"] for row in questions], 10).result()
    gold = [{fact["title"] for fact in row["metadata"]["supporting_facts"]} for row in questions]
    found = [{hit.title for hit in hits} for hits in answers]
    assert all(hit.passage == passages[hit.doc_id] for hits in answers for hit in hits)
    recall = sum(len(titles & got) for titles, got in zip(gold, found, strict=True)) / sum(map(len, gold))
    assert 0.80 < recall < 0.90
    assert sum(bool(titles & got) for titles, got in zip(gold, found, strict=True)) >= 0.97 * len(questions)
