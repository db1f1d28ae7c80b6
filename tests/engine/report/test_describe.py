from engine.report.describe import describe, differing, flatten


def test_the_parts_that_place_a_result(make_run):
    parts = dict(describe(make_run(seed=7, roles={"judge": "main"}).config))
    assert parts["loop"] == "S2G, at most 4 retrievals, query from the gap alone (up to 1)"
    assert parts["cut"] == "gapr, eta 0.05, r 3, k min 1"
    assert parts["judge"] == "scripted"
    assert parts["seed"] == "7"


def test_loops_without_a_judge_name_none(make_run):
    assert "judge" not in dict(describe(make_run(loop={"kind": "single"}).config))
    rounds = dict(describe(make_run(loop={"kind": "fixed_rounds", "rounds": 3}).config))
    assert rounds["loop"] == "fixed rounds, 3 retrievals, no judge"
    assert dict(describe(make_run(judge={"kind": "oracle"}).config))["judge"].startswith("oracle")
    assert dict(describe(make_run(extract={"kind": "none"}).config))["evidence"] == "whole passages"


def test_what_differs_between_configurations(make_run):
    base = make_run().config
    other = make_run(judge={"threshold": 1.5}, seed=3, runs_dir="elsewhere").config
    assert differing([base, other]) == [("judge.threshold", ["none", "1.5"]), ("seed", ["0", "3"])]
    assert differing([base, base]) == []


def test_flatten_keeps_every_leaf():
    tree = {"a": {"b": 1, "c": {}}, "d": [1, 2], "e": [{"f": None}], "g": True}
    assert flatten(tree) == {"a.b": "1", "a.c": "{}", "d": "1, 2", "e.0.f": "none", "g": "True"}
