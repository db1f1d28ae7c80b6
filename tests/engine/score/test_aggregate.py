import json

import pyarrow as pa
import pytest
from score_rows import question, rows, trace, turn

from engine.config import ExperimentConfig
from engine.records import ParseStatus, StopReason
from engine.schema import METRICS, TIMINGS
from engine.score.aggregate import BINARY, aggregate

CONFIG = ExperimentConfig.model_validate(
    {
        "name": "t",
        "questions": {"path": "q.jsonl"},
        "retriever": {"kind": "bm25", "corpus": {"path": "c.jsonl"}, "index": "i"},
        "models": {"main": {"kind": "scripted"}},
        "truncate": {"kind": "fixed"},
        "extract": {"kind": "pointer"},
        "cost": {"models": {"main": {"prompt_per_million": 1.0, "completion_per_million": 2.0}}},
    }
)


def figures(*traces, timings=None, config=CONFIG):
    return aggregate(rows(*traces), timings, config, resamples=200)


def seven_of_ten():
    """Ten questions, three of which ended in an error; four of the seven others are right."""
    for i in range(10):
        error = "BackendError" if i in (2, 5) else "CallTimeout" if i == 8 else None
        answer = "Paris" if i in (0, 1, 3, 4) else "Rome"
        yield trace(question(f"q{i}"), [turn(0, docs="ab", kept=1)], answer=answer, error=error)


def test_every_mean_comes_with_its_coverage():
    found = figures(*seven_of_ten())
    em = found["metrics"]["em"]
    assert (em["mean"], em["n"], em["asked"]) == (pytest.approx(4 / 7), 7, 10)
    assert found["questions"] == {
        "planned": None,
        "asked": 10,
        "ok": 7,
        "errors": 3,
        "with_gold_evidence": 10,
    }
    assert found["errors"] == {"BackendError": 2, "CallTimeout": 1}
    assert "3 of 10 questions ended in an error (BackendError 2, CallTimeout 1)" in found["warnings"][0]


def test_metrics_json_is_plain_json_without_nan():
    found = figures(*seven_of_ten())
    assert set(found["metrics"]) == set(METRICS)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_wilson_for_scores_of_zero_and_one_and_bootstrap_for_the_others():
    methods = {name: figures(*seven_of_ten())["metrics"][name]["method"] for name in METRICS}
    assert {name for name, method in methods.items() if method == "wilson"} == BINARY


def test_stop_reasons_overall_and_by_retrievals():
    found = figures(
        trace(question("q1"), [turn(0, docs="a", kept=1)], stop=StopReason.SUFFICIENT),
        trace(question("q2"), [turn(0, docs="a", kept=1)], stop=StopReason.SUFFICIENT),
        trace(question("q3"), [turn(0, docs="a", kept=1), turn(1, docs="b", kept=1)], stop=StopReason.BUDGET),
        trace(question("q4"), [], error="E"),
    )["stop_reasons"]
    assert found["overall"] == {"sufficient": 2, "budget": 1, "error": 1}
    assert found["by_retrievals"] == [
        {"retrievals": 0, "counts": {"error": 1}},
        {"retrievals": 1, "counts": {"sufficient": 2}},
        {"retrievals": 2, "counts": {"budget": 1}},
    ]


def test_gold_read_by_number_of_retrievals_keeps_what_a_stopped_question_had():
    # q1 reads a, then b. q2 reads both at once and stops. q3 reads neither. q4 has no gold. q5 is an error.
    found = figures(
        trace(question("q1"), [turn(0, docs="a", kept=1), turn(1, docs="b", kept=1, gold=1)]),
        trace(question("q2"), [turn(0, docs="ab", kept=2), turn(1, query=None, verdict=True, gold=2)]),
        trace(question("q3"), [turn(0, docs="x", kept=1), turn(1, docs="y", kept=1)]),
        trace(question("q4", facts=()), [turn(0, docs="a", kept=1)]),
        trace(question("q5"), [turn(0, docs="ab", kept=2)], error="E"),
    )["retrieval"]
    assert found["by_retrievals"] == [
        {"retrievals": 0, "recall": 0.0, "complete": 0.0, "n": 3, "searching": 5},
        {"retrievals": 1, "recall": 0.5, "complete": pytest.approx(1 / 3), "n": 3, "searching": 5},
        {"retrievals": 2, "recall": pytest.approx(2 / 3), "complete": pytest.approx(2 / 3), "n": 3, "searching": 2},
    ]
    assert found["per_question"] == {"mean": 1.4, "median": 1.0, "p95": 2.0, "max": 2.0}


def test_kept_hits_empty_searches_and_gold_lost():
    found = figures(
        trace(question("q1"), [turn(0, docs="abx", kept=1), turn(1, docs="xy", kept=2, gold_dropped=1)]),
        trace(question("q2"), [turn(0, docs="", kept=0)]),
    )["retrieval"]
    assert (found["searches"], found["empty_searches"]) == (3, 1)
    assert found["mean_hits"] == pytest.approx(5 / 3)
    assert found["mean_kept"] == 1.0
    assert found["gold_lost_to_dedup"] == {"hits": 1, "questions": 1}


def test_scores_by_question_type():
    found = figures(
        trace(question("q1", type="bridge"), answer="Paris"),
        trace(question("q2", type="bridge"), answer="Rome"),
        trace(question("q3", type="comparison"), answer="Paris"),
        trace(question("q4"), answer="Rome"),
    )["by_type"]
    assert {kind: (group["asked"], group["metrics"]["em"]["mean"]) for kind, group in found.items()} == {
        "bridge": (2, 0.5),
        "comparison": (1, 1.0),
    }
    assert figures(trace(question("q1")))["by_type"] == {}


def test_the_judges_own_calls_are_on_the_bill():
    # judge 3 * 100 + 3 * 2 * 10, reasoner 2 * 50 + 2 * 2 * 5, per million: 360 + 120 = 480.
    found = figures(
        trace(question("q1"), [turn(0, docs="a", kept=1)], usage={"judge": (2, 200, 20), "reasoner": (1, 50, 5)}),
        trace(question("q2"), [turn(0, docs="a", kept=1)], usage={"judge": (1, 100, 10), "reasoner": (1, 50, 5)}),
    )
    assert found["usage"]["judge"] == {"calls": 3, "prompt_tokens": 300, "completion_tokens": 30}
    assert found["cost"]["by_role"]["judge"] == pytest.approx(360e-6)
    assert found["cost"]["total"] == pytest.approx(480e-6)
    assert found["cost"]["per_question"] == pytest.approx(240e-6)


def test_an_empty_run_has_no_means_and_says_so():
    found = figures()
    assert {metric["mean"] for metric in found["metrics"].values()} == {None}
    assert found["retrieval"]["per_question"]["mean"] is None
    assert found["warnings"] == ["The run has no questions."]
    json.dumps(found, allow_nan=False)


def test_figures_do_not_depend_on_shard_order():
    traces = list(seven_of_ten())
    forward, backward = figures(*traces), figures(*reversed(traces))
    for part in ("questions", "stop_reasons", "errors", "retrieval", "judge", "usage", "cost", "by_type"):
        assert forward[part] == backward[part]
    assert forward["metrics"]["em"] == backward["metrics"]["em"]


class TestCautions:
    def test_none_for_a_sound_run(self):
        sound = [
            trace(question(f"q{i}"), [turn(0, docs=f"ab{i}", kept=2), turn(1, query=None, verdict=True, gold=2)])
            for i in range(6)
        ]
        assert figures(*sound)["warnings"] == []

    def test_one_ranked_list_for_most_questions(self):
        # Four of seven share one list: over half. Three of six do not.
        same = [trace(question(f"s{i}"), [turn(0, docs="xyz", kept=1)]) for i in range(4)]
        other = [trace(question(f"o{i}"), [turn(0, docs=f"x{i}", kept=1)]) for i in range(3)]
        assert any("4 of 7 questions got one identical" in text for text in figures(*same, *other)["warnings"])
        assert not any("identical" in text for text in figures(*same[:3], *other)["warnings"])
        assert not any("identical" in text for text in figures(*same[:3])["warnings"])

    def test_nothing_found(self):
        empty = [trace(question(f"q{i}"), [turn(0, docs="", kept=0)], answer="") for i in range(3)]
        found = figures(*empty)
        assert found["warnings"] == ["3 of 3 searches found nothing."]
        assert found["metrics"]["em"]["mean"] == 0.0

    def test_gold_lost_to_dedup(self):
        lost = trace(question("q1"), [turn(0, docs="a", kept=1), turn(1, docs="x", kept=1, gold_dropped=1)])
        assert any("unread gold passages in 1 questions" in text for text in figures(lost)["warnings"])

    def test_a_judge_that_cannot_be_read_or_never_stops(self):
        turns = [turn(0, docs="ab", kept=1, verdict=False, status=ParseStatus.UNPARSED)]
        found = figures(*(trace(question(f"q{i}"), turns) for i in range(5)))["warnings"]
        assert any(text.startswith("5 of 5 verdicts of the judge could not be read") for text in found)
        assert any(text.startswith("The judge never said sufficient in 5 verdicts") for text in found)

    def test_em_above_f1_is_called_corrupt(self):
        broken = rows(trace(question("q1")), trace(question("q2")))
        broken[0]["metrics"]["f1"] = 0.5
        assert any("EM is above F1 for 1 questions" in text for text in aggregate(broken, None, CONFIG)["warnings"])

    def test_whole_passages_where_sentences_are_scored(self):
        whole = turn(0, docs="a", kept=1, evidence=[("a", None, "t")])
        assert any("In 1 questions evidence was kept as whole" in w for w in figures(trace(turns=[whole]))["warnings"])
        no_sentences = question(facts=[("A", "a", None)])
        assert not any("whole" in w for w in figures(trace(no_sentences, [whole]))["warnings"])

    def test_evidence_that_outgrew_the_prompt(self):
        full = turn(0, docs="a", kept=1, memory_dropped=2)
        assert any("In 1 questions the evidence outgrew" in w for w in figures(trace(turns=[full]))["warnings"])

    def test_a_run_that_was_cut_off(self):
        found = aggregate(rows(trace(question("q1"))), None, CONFIG, planned=100)
        assert "The run is not finished: 1 of 100 planned questions are in." in found["warnings"]
        assert found["questions"]["planned"] == 100
        assert aggregate(rows(trace(question("q1"))), None, CONFIG, planned=1)["warnings"] == []

    def test_missing_timings(self):
        timing = {"question_id": "q1", "attempt": "a", "node": "n", "started_at": 0.0, "wall_s": 1.0, "roles": []}
        table = pa.Table.from_pylist([timing], schema=TIMINGS)
        found = figures(trace(question("q1")), trace(question("q2")), timings=table)["warnings"]
        assert "Timings exist for 1 of 2 questions only." in found


def test_queries_that_were_written_and_never_searched_for():
    lost = trace(question("q1"), [turn(0, query=None, unexecuted="capital of France")])
    other = trace(question("q2"), [turn(0, docs="ab", kept=1)])
    assert any("All 1 queries that the model wrote were left unexecuted" in w for w in figures(lost)["warnings"])
    told = figures(lost, other)
    assert told["retrieval"]["unexecuted_queries"] == 1
    assert any("1 queries that the model wrote were not searched for" in w for w in told["warnings"])
    assert not any("queries that the model wrote" in w for w in figures(other)["warnings"])
