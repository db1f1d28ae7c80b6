"""The figures of a run's states, on patterns whose every count is known."""

from state_rows import arrow, question

from engine.stopping.price import Rates
from engine.stopping.state_table import state_table
from engine.stopping.summary import UNJUDGED, summarise_states, sweep_rows
from engine.stopping.truth import labelled

# Right after one search, judged there with 2; never right, judged before with 1; never right, its reply not read.
ROWS = arrow(
    question("a", "011", 1, scores=(-1.0, 2.0), parse_status=["ok", "ok", None]),
    question("b", "00", 0, scores=(1.0,), parse_status=["ok", None]),
    question("c", "00", 0, scores=(float("-inf"),), parse_status=["unparsed", None]),
)


def labelled_rows(rows, **settings):
    return labelled(state_table(rows), **settings)


def test_a_sweep_counts_every_threshold():
    rows = sweep_rows(labelled_rows(ROWS), 10)
    assert [(row["threshold"], row["stops"], row["unsafe"]) for row in rows] == [(2.0, 1, 0), (1.0, 2, 1), (-1.0, 2, 2)]
    assert [row["accepted_risk"]["mean"] for row in rows] == [0.0, 0.5, 1.0]
    # Native: one of three is right, after 2 + 1 + 1 searches. At 2 question a stops after one search, still right.
    assert [round(3 * row["em"]) for row in rows] == [1, 1, 0]
    assert [round(3 * row["searches"]) for row in rows] == [3, 2, 1]
    assert [round(3 * row["judge_calls"]) for row in rows] == [4, 4, 3]


def test_a_thinned_sweep_keeps_its_ends():
    rows = sweep_rows(labelled_rows(ROWS), 2)
    assert [row["threshold"] for row in rows] == [2.0, -1.0]


def test_replies_and_ranking_are_of_the_questions_that_count():
    found = summarise_states(labelled_rows(ROWS), Rates(), ROWS, resamples=20)
    assert found["judge"]["parse_status"] == {"ok": 3, "unparsed": 1}
    ranking = found["judge"]["ranking"]
    assert (ranking["states"], ranking["masked"], ranking["positives"]) == (4, 1, 1)
    assert ranking["average_precision"]["mean"] == 1.0
    fewer = summarise_states(labelled_rows(ROWS, exclude=["c"]), Rates(), ROWS, resamples=20)
    assert fewer["judge"]["parse_status"] == {"ok": 3}


def test_without_a_judge_or_probes_what_needs_them_is_left_out():
    rows = arrow(question("a", "---", 1, answer_in_context=[False, True, True]))
    found = summarise_states(labelled_rows(rows), Rates(), rows, resamples=20)
    assert (found["sweep"], found["judge"]) == ([], {"parse_status": {UNJUDGED: 2}, "ranking": None})
    assert [row["policy"] for row in found["replay"]["policies"]] == ["native", "oracle"]
    assert found["audit"]["truth"]["name"] == "answer_in_context"
