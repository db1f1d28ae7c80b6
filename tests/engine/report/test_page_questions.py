import json
from dataclasses import replace

from engine.records import Action
from engine.report.questions import TRANSCRIPT_CHARS, choose, page_data, traces_that_fit
from engine.score.columns import read_columns


def columns(run):
    return read_columns(run.batches())


def test_all_questions_are_chosen_while_there_is_room(make_run):
    sample = choose([columns(make_run(traces=["q2", "q1"]))], 2)
    assert sample.ids == ["q2", "q1"]
    assert sample.rule == "All 2 questions."


def test_errors_come_first_and_the_rest_is_a_seeded_sample(make_run, make_trace):
    ids = [f"q{i}" for i in range(30)]
    run = columns(make_run(traces=[make_trace(qid, error=qid in ("q7", "q21")) for qid in ids]))
    sample = choose([run], 10, seed=1)
    assert len(sample.ids) == 10
    assert {"q7", "q21"} <= set(sample.ids)
    assert sample.ids == sorted(sample.ids, key=ids.index)
    assert sample.rule == "10 of 30 questions: all 2 with an error, the others a sample with seed 1."
    assert choose([run], 10, seed=1) == sample
    assert choose([run], 10, seed=2).ids != sample.ids


def test_the_choice_depends_on_ids_and_not_on_their_order(make_run):
    ids = [f"q{i}" for i in range(30)]
    forward, backward = choose([columns(make_run(traces=ids))], 9), choose([columns(make_run(traces=ids[::-1]))], 9)
    assert set(forward.ids) == set(backward.ids)


def test_more_errors_than_room(make_run, make_trace):
    run = columns(make_run(traces=[make_trace(f"q{i}", error=i < 5) for i in range(8)]))
    sample = choose([run], 3)
    assert set(sample.ids) < {f"q{i}" for i in range(5)}
    assert "3 of 5 with an error" in sample.rule


def test_an_error_in_any_run_is_chosen(make_run, make_trace):
    ids = [f"q{i}" for i in range(20)]
    base = columns(make_run(traces=ids))
    other = columns(make_run(traces=[make_trace(qid, error=qid == "q13") for qid in ids]))
    assert "q13" in choose([base, other], 2).ids


def test_a_trace_becomes_plain_data_with_gold_marked(make_run):
    data = page_data([make_run(traces=["q1", "q2"])], ["q2"])
    assert json.loads(json.dumps(data)) == data
    [question] = data["questions"]
    assert (question["id"], question["type"], question["gold"]) == ("q2", "bridge", ["Lund"])
    assert question["facts"] == [["Jupiter Hotel", 0], ["Ada Brook", 1]]
    [run] = question["runs"]
    assert (run["a"], run["stop"], run["n"], run["err"], run["full"]) == ("Lund", "sufficient", 2, None, 1.0)
    first, second, last = run["turns"]
    assert [data["docs"][doc][0] for doc, _, _ in first["hits"]] == ["d1", "x1", "x2", "x3", "x4", "d2"]
    assert [gold for _, _, gold in first["hits"]] == [1, 0, 0, 0, 0, 1]
    assert first["kept"] == 2
    assert second["ev"] == [[data["docs"].index(["d2", "Ada Brook"]), 1, "She was born in Lund.", 2]]
    assert second["v"]["gaps"] == [["bridge_entity", "Ada Brook", "birthplace", "where she was born"]]
    assert (second["v"]["s"], second["v"]["p"], second["v"]["how"]) == (-2.5, 0.0759, "repaired")
    assert (last["v"]["ok"], last["q"], last["hits"]) == (True, None, [])
    assert run["got"] == [3, 3]


def test_how_far_each_gold_passage_got(make_run, make_trace):
    # An error after the first turn: d1 was kept, d2 listed below the cut only.
    data = page_data([make_run(traces=[make_trace("q1", error=True)])], ["q1"])
    run = data["questions"][0]["runs"][0]
    assert run["got"] == [3, 1]
    assert run["err"] == ["CallTimeout", "no reply within 60 s"]


def test_a_run_that_did_not_ask_has_none(make_run):
    data = page_data([make_run("a", ["q1"]), make_run("b", ["q1", "q2"])], ["q1", "q2"])
    assert [[run is None for run in question["runs"]] for question in data["questions"]] == [
        [False, False],
        [True, False],
    ]


def test_long_replies_are_clipped_visibly(make_run, make_trace):
    data = page_data([make_run(traces=[make_trace("q1", answer="x" * 20_000)])], ["q1"])
    raw = data["questions"][0]["runs"][0]["raw"]
    assert len(raw) == TRANSCRIPT_CHARS + 2
    assert raw.endswith(" …")


def test_what_a_loop_leaves_is_a_transcript_where_it_has_one(make_run):
    loop = {"kind": "search_r1", "observations": "user_turn"}
    data = page_data([make_run("a"), make_run("b", loop=loop, truncate={"kind": "fixed"})], ["q1"])
    assert data["reply"] == ["the model's reply", "the whole transcript"]


def test_a_turn_carries_what_was_probed_done_and_not_searched_for(make_run, make_trace):
    made = make_trace("q1", gold=("Lund",))
    watched = (
        replace(made.turns[0], probe_answer="the Lund", action=Action.SEARCH),
        replace(made.turns[1], probe_answer="Rome", action=Action.INVALID, unexecuted="where in Lund"),
        replace(made.turns[2], probe_answer=None),
    )
    turns = page_data([make_run(traces=[replace(made, turns=watched)])], ["q1"])["questions"][0]["runs"][0]["turns"]
    assert [(turn["probe"], turn["pok"], turn["act"], turn["un"]) for turn in turns] == [
        ("the Lund", 1.0, "search", None),
        ("Rome", 0.0, "invalid", "where in Lund"),
        (None, None, None, None),
    ]


def test_long_traces_leave_room_for_fewer_and_errors_keep_theirs(make_run, make_trace):
    run = make_run(traces=[make_trace(f"q{i}", error=i == 7) for i in range(12)])
    every, data = traces_that_fit([run], [columns(run)], 12)
    assert every.rule == "All 12 questions."
    sizes = {q["id"]: len(json.dumps(q, ensure_ascii=False)) for q in data["questions"]}
    drawn = choose([columns(run)], 4).ids
    room = sum(sizes[qid] for qid in drawn)
    sample, fitting = traces_that_fit([run], [columns(run)], 12, chars=room)
    assert sample.ids == drawn == [q["id"] for q in fitting["questions"]]
    assert "q7" in drawn
    assert sample.rule == (
        "4 of 12 questions: all 1 with an error, the others a sample with seed 0. "
        "More would make the page slow to open."
    )
    assert len(traces_that_fit([run], [columns(run)], 12, chars=room - 1)[0].ids) == 3
    assert len(traces_that_fit([run], [columns(run)], 12, chars=1)[0].ids) == 1
