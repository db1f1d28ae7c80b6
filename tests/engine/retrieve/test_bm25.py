"""Lucene's answers against scores worked out here, and every query that has broken a retriever before."""

from __future__ import annotations

import math
import multiprocessing
import random
import shutil
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import lucene_worker
import numpy as np
import pytest

from engine.config import Bm25Config
from engine.records import Passage

K1, B = 0.9, 0.4


def passage(doc_id: str, text: str, title: str = "", sentences: tuple[str, ...] = ()) -> Passage:
    return Passage(doc_id, title, text, sentences)


def norm_length(tokens: int) -> int:
    """Lucene's one-byte length: exact below 40, then 24 plus the rest cut to four significant bits."""
    if tokens < 40:
        return tokens
    rest = tokens - 24
    shift = rest.bit_length() - 4
    return 24 + (rest >> shift << shift)


def bm25_scores(texts: dict[str, str], query: str) -> dict[str, float]:
    """BM25 as Lucene defines it, for texts of words that its analyser leaves alone."""
    bags = {doc_id: text.split() for doc_id, text in texts.items()}
    filled = [bag for bag in bags.values() if bag]
    mean = sum(map(len, filled)) / len(filled)
    scores = {}
    for doc_id, bag in bags.items():
        score = 0.0
        for word, times in Counter(query.split()).items():
            tf, df = bag.count(word), sum(word in other for other in filled)
            idf = math.log(1 + (len(filled) - df + 0.5) / (df + 0.5))
            score += times * idf * tf / (tf + K1 * (1 - B + B * norm_length(len(bag)) / mean))
        if score > 0:
            scores[doc_id] = score
    return scores


FIVE = {"1": "foo", "2": "dog", "3": "baz", "5": "quick god", "4": "quick fox"}
PLACES = [
    passage("c", "Tanzania"),
    passage("b", "Italy"),
    passage("a", "Hullport"),
    passage("empty", ""),
    passage("stop", "the and of"),
    passage(
        "long",
        "Its text. Ends 😀 here\u2028\x00 é.",
        title="A 𠀀 title",
        sentences=("Its text.", "Ends 😀 here\u2028\x00 é."),
    ),
]


def generated(name: str) -> list[Passage]:
    """40 passages of words that no other name's passages have."""
    draw = random.Random(2)
    return [
        passage(
            f"{name}{number}",
            " ".join(draw.choices([f"{name}{word}x" for word in range(500)], k=30)),
            f"{name} {number}",
        )
        for number in range(40)
    ]


GENERATED = generated("mine")


@pytest.fixture(scope="module")
def five(make_index) -> Bm25Config:
    return make_index([passage(doc_id, text) for doc_id, text in FIVE.items()])


@pytest.fixture(scope="module")
def places(make_index) -> Bm25Config:
    return make_index([*GENERATED, *PLACES])


@pytest.fixture(scope="module")
def random_texts() -> dict[str, str]:
    """300 texts over 12 words, so that tied scores are common; some empty, one longer than exact lengths go."""
    draw = random.Random(7)
    texts = {
        f"d{number:03d}": " ".join(draw.choices([f"zq{word}" for word in range(12)], k=draw.randrange(0, 9)))
        for number in draw.sample(range(1000), 300)
    }
    texts["long"] = " ".join(["zq0"] * 3 + ["zq11"] * 97)
    return texts


@pytest.fixture(scope="module")
def random_index(make_index, random_texts) -> Bm25Config:
    return make_index([passage(doc_id, text) for doc_id, text in random_texts.items()])


def ask(java_process: ProcessPoolExecutor, config: Bm25Config, query: str, k: int = 10):
    return java_process.submit(lucene_worker.search, config, [query], k).result()[0]


def test_two_documents_tie_for_first_with_the_hand_computed_score(java_process, five):
    # N 5, df 2, mean length 7/5, both documents 2 long with one occurrence.
    idf = math.log(1 + 3.5 / 2.5)
    expected = idf * 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 2 / 1.4))
    hits = ask(java_process, five, "quick")
    assert [hit.doc_id for hit in hits] == ["4", "5"]
    assert [hit.rank for hit in hits] == [1, 2]
    assert hits[0].score == hits[1].score == pytest.approx(expected, rel=1e-6)


def test_a_tie_across_the_cut_keeps_the_smaller_id(java_process, five):
    assert [hit.doc_id for hit in ask(java_process, five, "quick", k=1)] == ["4"]


def test_a_word_asked_twice_counts_twice(java_process, five):
    once, twice = ask(java_process, five, "fox"), ask(java_process, five, "fox fox")
    assert twice[0].score == pytest.approx(2 * once[0].score, rel=1e-6)


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.75), (0.0, 0.0)])
def test_k1_and_b_act_at_search_time(java_process, five, k1, b):
    config = five.model_copy(update={"k1": k1, "b": b})
    expected = math.log(1 + 4.5 / 1.5) / (1 + k1 * (1 - b + b * 2 / 1.4))
    assert ask(java_process, config, "fox")[0].score == pytest.approx(expected, rel=1e-6)


def test_scores_equal_an_independent_bm25_and_are_float32(java_process, random_index, random_texts):
    queries = ["zq0", "zq1 zq2", "zq3 zq3 zq4 zq11", " ".join(f"zq{word}" for word in range(12))]
    answers = java_process.submit(lucene_worker.search, random_index, queries, 1000).result()
    for query, hits in zip(queries, answers, strict=True):
        expected = bm25_scores(random_texts, query)
        assert {hit.doc_id: hit.score for hit in hits} == pytest.approx(expected, rel=1e-5)
        assert all(hit.score == float(np.float32(hit.score)) for hit in hits)


def test_lists_are_sorted_by_score_then_id_and_every_cut_is_a_prefix(java_process, random_index):
    query = "zq3 zq7"
    whole = ask(java_process, random_index, query, k=1000)
    assert whole == sorted(whole, key=lambda hit: (-hit.score, hit.doc_id))
    tied = sum(first.score == second.score for first, second in pairwise(whole))
    assert tied > 20
    for k in range(1, len(whole)):
        assert ask(java_process, random_index, query, k=k) == whole[:k]


def test_a_batch_gives_the_same_as_one_by_one(java_process, random_index):
    draw = random.Random(3)
    queries = [" ".join(draw.choices([f"zq{word}" for word in range(14)], k=draw.randint(1, 3))) for _ in range(101)]
    batch = java_process.submit(lucene_worker.search, random_index, queries, 7).result()
    single = java_process.submit(lucene_worker.search_one_by_one, random_index, queries, 7).result()
    one_thread = random_index.model_copy(update={"threads": 1})
    assert batch == single == java_process.submit(lucene_worker.search, one_thread, queries, 7).result()
    assert {len(hits) for hits in batch} == {0, 7}


def test_words_are_stemmed_the_same_in_index_and_query(java_process, places):
    hits = ask(java_process, places, "Italy")
    assert hits[0].doc_id == "b"
    assert hits[0].score > 0
    assert len(hits) == 1


def test_a_hit_carries_the_whole_passage(java_process, places):
    for query in ("title", "𠀀", "😀", "É ends"):
        assert [hit.passage for hit in ask(java_process, places, query)] == [PLACES[-1]]


@pytest.mark.parametrize("query", ["", " \n\t", "zzxqv qqpl?", "The and of it?", "\x00", "()[]{}", "\ud83d"])
def test_a_query_without_known_words_finds_nothing(java_process, places, query):
    assert ask(java_process, places, query) == []


def test_query_syntax_is_read_as_words(java_process, places):
    for query in (
        'contents:"Italy"~^* AND NOT (x OR y*) \\ / [a TO b] ?',
        "-italy",
        "+(italy",
        "id: italy && !",
        "it\ud83daly italy",
    ):
        assert [hit.doc_id for hit in ask(java_process, places, query)] == ["b"], query


def test_a_query_of_thousands_of_words_is_no_error(java_process, places):
    query = " ".join(f"word{number}" for number in range(5000)) + " Italy"
    assert [hit.doc_id for hit in ask(java_process, places, query)] == ["b"]


def test_k_over_the_corpus_and_k_zero(java_process, places):
    assert {hit.doc_id for hit in ask(java_process, places, "italy tanzania hullport", k=10**12)} == {"a", "b", "c"}
    assert ask(java_process, places, "italy", k=0) == []
    with pytest.raises(ValueError, match="at least 0"):
        ask(java_process, places, "italy", k=-1)


def test_no_queries_give_no_lists(java_process, places):
    assert java_process.submit(lucene_worker.search, places, [], 5).result() == []


def test_empty_lists_keep_their_place_in_a_batch(java_process, places):
    answers = java_process.submit(lucene_worker.search, places, ["italy", "zzxqv", "", "tanzania"], 5).result()
    assert [[hit.doc_id for hit in hits] for hits in answers] == [["b"], [], [], ["c"]]


def test_a_corpus_without_text_finds_nothing(java_process, make_index):
    passages = [passage("1", ""), passage("2", " "), passage("3", "")]
    config = make_index(passages)
    assert ask(java_process, config, "anything") == []
    assert java_process.submit(lucene_worker.checked, config, passages).result() == []


def test_a_closed_retriever_says_so(java_process, five):
    assert java_process.submit(lucene_worker.search_after_close, five).result() == "BackendDead"


def test_what_is_no_index_is_refused_in_one_line(java_process, five, tmp_path: Path):
    kind, message = java_process.submit(
        lucene_worker.open_error, five.model_copy(update={"index": str(tmp_path / "none")})
    ).result()
    assert kind == "IndexMismatch"
    assert "stopgap index" in message
    assert "\n" not in message


def test_a_damaged_index_is_refused_in_one_line(java_process, five, tmp_path: Path):
    shutil.copytree(five.index, tmp_path / "copy")
    config = five.model_copy(update={"index": str(tmp_path / "copy")})
    segments = next((tmp_path / "copy").glob("segments_*"))
    segments.write_bytes(segments.read_bytes()[:-9])
    kind, message = java_process.submit(lucene_worker.open_error, config).result()
    assert kind == "IndexMismatch"
    assert "Lucene cannot open" in message
    assert "\n" not in message


def test_two_processes_at_once_give_what_one_gives(java_process, random_index):
    draw = random.Random(5)
    queries = [" ".join(draw.choices([f"zq{word}" for word in range(12)], k=4)) for _ in range(200)]
    alone = java_process.submit(lucene_worker.search, random_index, queries, 10).result()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as other:
        both = [pool.submit(lucene_worker.search, random_index, queries, 10) for pool in (java_process, other)]
        assert both[0].result() == both[1].result() == alone


def test_passages_find_themselves_and_strangers_do_not(java_process, places):
    assert java_process.submit(lucene_worker.checked, places, GENERATED).result() == []
    failures = java_process.submit(lucene_worker.checked, places, generated("other")).result()
    assert len(failures) == 5
    assert failures[0].startswith("passage other0 ('other 0') is not among the first 10 hits for its own first words")
