"""The sections about stopping: what stands on the page is what the engine computes from the run's states."""

import json
import re
from html import unescape

import pyarrow as pa
import pytest
from recorded_runs import same_questions
from sklearn.metrics import average_precision_score

from engine.report import build_report
from engine.report.wording import percent, percent_bounds, quantity, signed, signed_bounds
from engine.rows import row_to_trace
from engine.stopping.audit import audit
from engine.stopping.policies import AnswerRepeats, JudgeThreshold, Oracle
from engine.stopping.replay import replay, replayed, stop_counts
from engine.stopping.state_table import state_table
from engine.stopping.states import STATES, states_of
from engine.stopping.truth import labelled

SECTIONS = ("reachability", "frontier", "ranking")
DRAWS = 50


@pytest.fixture(scope="module")
def report(recorded, tmp_path_factory):
    return build_report([recorded], tmp_path_factory.mktemp("report"), resamples=DRAWS)


@pytest.fixture(scope="module")
def states(recorded):
    """The states by way of their records."""
    traces = [row_to_trace(row) for batch in recorded.batches() for row in batch.to_pylist()]
    rows = [{name: getattr(s, name) for name in STATES.names} for trace in traces for s in states_of(trace)]
    return labelled(state_table(pa.Table.from_pylist(rows, schema=STATES), judge_in_loop=True))


def section(page, name):
    """The text of a section, its tags turned into blanks; the charts left out."""
    body = re.search(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)[1]
    return " ".join(unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", body, flags=re.DOTALL)).split())


def test_metrics_hold_what_audit_and_replay_say(report, states):
    found = json.loads(report.metrics.read_text())["states"]
    assert found["audit"] == json.loads(json.dumps(audit(states, resamples=DRAWS)))
    replayed = replay(states, [AnswerRepeats(), Oracle()], resamples=DRAWS)["policies"]
    for row, expected in zip(found["replay"]["policies"], json.loads(json.dumps(replayed)), strict=True):
        for name in ("policy", "em", "f1", "searches", "stops", "decision", "matched"):
            assert row[name] == expected[name]
        assert row["spent"]["by_kind"] == expected["spent"]["by_kind"]
    assert found["replay"]["prices"]["retrieval"] == 0.001


def test_the_markdown_table_has_a_row_per_policy_and_budget(report):
    states = report.figures["states"]
    lines = report.table.read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    table = rows[next(i for i, row in enumerate(rows) if row[0] == "Policy") :]
    policies, budgets = states["replay"]["policies"], states["audit"]["fixed_budgets"]
    assert len(table) == 2 + len(policies) + len(budgets)
    assert {len(row) for row in table} == {8}
    oracle = policies[-1]
    assert table[1 + len(policies)] == [
        "Oracle",
        f"{percent(oracle['em']['mean'])} {percent_bounds(oracle['em'])}",
        percent(oracle["f1"]["mean"]),
        quantity(oracle["searches"]["mean"]),
        str(oracle["stops"]["stops"]),
        f"{percent(oracle['stops']['accepted_risk']['mean'])} {percent_bounds(oracle['stops']['accepted_risk'])}",
        reading_of(oracle["against_native"]["em"]["difference"]),
        percent(oracle["matched"]["mixture"]["em"]["mean"]),
    ]
    assert table[-1][0] == f"Fixed budget {budgets[-1]['k']}"


def reading_of(difference):
    return f"{signed(difference['mean'], 100)} {signed_bounds(difference, 100)}"


def test_the_sweep_is_the_threshold_policy_at_every_point(report, states):
    rows = report.figures["states"]["sweep"]
    scores = [row["threshold"] for row in rows]
    assert len(scores) > 10
    assert scores == sorted(scores, reverse=True)
    for row in rows:
        one = replayed(states, JudgeThreshold(row["threshold"]))
        counts = stop_counts(states, one.stopped)
        assert (row["stops"], row["unsafe"]) == (counts.stops, counts.unsafe)
        assert row["accepted_risk"]["high"] == counts.accepted_risk.high
        assert (row["em"], row["f1"]) == pytest.approx((one.em.mean(), one.f1.mean()))
        assert row["searches"] == pytest.approx(one.spent.searches.mean())
        assert row["judge_calls"] == pytest.approx(one.spent.by_kind["judge"][:, 0].mean())


def test_the_ranking_is_that_of_the_states_before_a_search(report, states):
    before = states.table.eligible
    judge = report.figures["states"]["judge"]
    expected = average_precision_score(states.safe[before], states.table.score[before])
    assert judge["ranking"]["average_precision"]["mean"] == pytest.approx(expected)
    assert judge["ranking"]["states"] == before.sum() == sum(judge["parse_status"].values())
    assert [row["turn"] for row in judge["ranking"]["by_turn"]] == [0, 1, 2]


def test_the_page_shows_those_figures(report):
    page, found = report.html.read_text(), report.figures["states"]
    told = section(page, "reachability")
    figures, cells = found["audit"], found["audit"]["cells"]
    assert "Truth probe : the answer given from the state matches a gold answer (EM)" in told
    for label, rate in (
        ("Native EM, %", figures["quality"]["native"]),
        ("Quality oracle, EM, %", figures["quality"]["oracle"]),
        ("Headroom, points", figures["quality"]["headroom"]),
        ("Avoidable searches, %", figures["cost"]["avoidable"]),
    ):
        assert f"{label} {percent(rate['mean'])} {percent_bounds(rate)}" in told
    assert figures["branch"]["meaning"] in told
    for unit, safe, unsafe in (("states", "safe", "not safe"), ("questions", "some state safe", "none safe")):
        four = cells[unit]
        assert f"{safe} {four['safe_native_right']} {four['safe_native_wrong']}" in told
        assert f"{unsafe} {four['unsafe_native_right']} {four['unsafe_native_wrong']}" in told

    told = section(page, "frontier")
    for row, name in zip(found["replay"]["policies"], ("Native", "Answer repeats", "Oracle"), strict=True):
        expected = f"{percent(row['em']['mean'])} {percent_bounds(row['em'])} {percent(row['f1']['mean'])}"
        assert f"{name} {expected} {quantity(row['searches']['mean'])} {row['stops']['stops']}" in told
    for row in figures["fixed_budgets"]:
        assert f"Fixed budget {row['k']} {percent(row['em']['mean'])} {percent_bounds(row['em'])}" in told
    last = found["sweep"][-1]
    assert f"{last['unsafe']} {percent(last['accepted_risk']['mean'])} {percent_bounds(last['accepted_risk'])}" in told
    assert page.count('class="dot judged"') == 3 * len(found["sweep"]), "EM, F1 and risk at every threshold"

    told, ranking = section(page, "ranking"), found["judge"]["ranking"]
    average = ranking["average_precision"]
    assert f"Average precision, % {percent(average['mean'])} {percent_bounds(average)}" in told
    assert f"Recall at precision 0.90, % {percent(ranking['recall_at'][0]['recall'])}" in told
    assert f"Brier score {quantity(ranking['brier'])}" in told
    assert f"Calibration error, points {percent(ranking['expected_calibration_error'])}" in told
    assert page.count('class="dot bin"') == sum(row["n"] > 0 for row in ranking["reliability"])


def test_the_bill_sets_apart_who_only_watched(report):
    """The loop asks its judge itself, so only the probe was there to record states."""
    body = re.search(r'<section id="cost">(.*?)</section>', report.html.read_text(), re.DOTALL)[1]
    groups = [re.findall(r'<tr><th scope="row">(\w+)</th>', group) for group in body.split("<tbody>")[1:3]]
    assert groups[0][:3] == ["judge", "reasoner", "retriever"]
    assert groups[1][0] == "probe"
    assert "asked at every state to record it" in body


def test_a_run_without_states_has_nothing_of_this(make_run, tmp_path):
    report = build_report([make_run()], tmp_path, resamples=DRAWS)
    page = report.html.read_text()
    assert "states" not in report.figures
    assert not any(f'id="{name}"' in page or f'href="#{name}"' in page for name in SECTIONS)
    assert "asked at every state" not in page


def test_each_run_with_states_has_its_sections_and_no_other(recorded, tmp_path):
    plain = same_questions(recorded, "plain", observe={})
    single = same_questions(recorded, "one-shot", loop={"kind": "single"})
    report = build_report([plain, recorded, single], tmp_path, resamples=DRAWS)
    runs = report.figures["runs"]
    assert ["states" in runs[name] for name in ("plain", "full", "one-shot")] == [False, True, True]
    page = report.html.read_text()
    for name in SECTIONS:
        body = re.search(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)[1]
        assert re.findall(r"</i>([^<]+)</h3>", body) == ["full", "one-shot"]


def test_states_that_cannot_be_used_say_why(tmp_path, make_run, make_trace):
    run = make_run("blind", [make_trace("q1", gold=())], observe={"full_budget": True})
    report = build_report([run], tmp_path, resamples=DRAWS)
    why = report.figures["states"]["unusable"]
    assert "no state before a search has a truth" in why
    page = report.html.read_text()
    assert why in section(page, "reachability")
    assert 'id="frontier"' not in page


def test_without_probes_the_truth_is_silver_and_named_and_without_scores_there_is_no_threshold(recorded, tmp_path):
    observe = {"full_budget": True, "probe": False, "judge": False}
    run = same_questions(recorded, "blind", loop={"kind": "fixed_rounds", "rounds": 2}, observe=observe)
    report = build_report([run], tmp_path, resamples=DRAWS)
    found, page = report.figures["states"], report.html.read_text()
    assert found["audit"]["truth"]["name"] == "answer_in_context"
    assert [row["policy"] for row in found["replay"]["policies"]] == ["native", "oracle"]
    assert (found["sweep"], found["judge"]["ranking"]) == ([], None)
    assert "Truth answer in context : silver" in section(page, "reachability")
    assert "no threshold to draw" in section(page, "frontier")
    assert "No state before a search has a usable judge score" in section(page, "ranking")
