"""Audits and replays as they are read in a terminal."""

from io import StringIO

import pyarrow as pa
import pytest
from rich.console import Console

from engine.report.stopping_tables import render_audit, render_replay, render_sweep
from engine.stopping.audit import audit
from engine.stopping.policies import AnswerRepeats, FixedBudget, JudgeThreshold, Oracle
from engine.stopping.price import Rates
from engine.stopping.replay import replay
from engine.stopping.state_table import state_table
from engine.stopping.states import STATES
from engine.stopping.truth import labelled

WIDTH = 118


def recorded(truth=None, probed=True):
    """Ten questions of three searches; the even ones are right after the first, by the judge's score too."""
    rows = []
    for i in range(10):
        for k in range(4):
            right = i % 2 == 0 and k > 0
            counts = {
                f"{kind}_{name}": k + 1 for kind in ("loop", "judge", "probe") for name in ("calls", "prompt_tokens")
            }
            rows.append(
                dict.fromkeys(STATES.names)
                | counts
                | {f"{kind}_completion_tokens": 0 for kind in ("loop", "judge", "probe", "native_loop")}
                | {"question_id": f"q{i}", "question": f"q{i}", "golden_answers": ["x"], "state": k}
                | {"effective_score": float(right), "eligible": k < 3, "answer_in_context": right}
                | (
                    {"probe_answer": "x" if right else f"{k}", "probe_em": float(right), "probe_f1": float(right)}
                    if probed
                    else {}
                )
                | {"native_em": float(i % 2 == 0), "native_f1": 1.0, "native_retrievals": 3}
                | {"native_loop_calls": 5, "native_loop_prompt_tokens": 5}
            )
    return labelled(state_table(pa.Table.from_pylist(rows, schema=STATES)), truth, exclude=["q9"])


def shown(table):
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(table)
    return out.getvalue()


def test_an_audit_names_its_truth_what_it_left_out_and_its_branch():
    text = shown(render_audit(audit(recorded(), resamples=50)))
    assert "truth probe: the answer given from the state matches a gold answer (EM)" in text
    assert "9 questions, 27 states before a search, 10 of them safe" in text
    assert "left out: 1 questions, excluded by request" in text
    assert "efficiency_only: " in text
    assert "10 of 27 searches avoidable" in " ".join(text.split())
    assert "5  answered " in text


@pytest.fixture(scope="module")
def figures():
    policies = [JudgeThreshold(1.0), FixedBudget(2), AnswerRepeats(), Oracle()]
    return replay(recorded(), policies, Rates(), resamples=50)


def test_a_replay_has_every_policy_and_the_fixed_budgets_of_its_cost(figures):
    lines = shown(render_replay(figures)).splitlines()
    assert max(map(len, lines)) <= WIDTH
    head = next(i for i, line in enumerate(lines) if "right>wrong" in line)
    names = [line[:20].strip() for line in lines[head + 2 : lines.index("", head)]]
    assert names == [
        "native",
        *("judge:1", "fixed:1", "fixed:2", "both, same cost"),
        "fixed:2",
        *("repeat", "fixed:2", "fixed:3", "both, same cost"),
        *("oracle", "fixed:1", "fixed:2", "both, same cost"),
    ]
    assert not any("…" in line for line in lines)


def test_a_policy_that_looks_is_told_what_that_costs_and_one_that_does_not_is_not(figures):
    text = shown(render_replay(figures))
    assert "Judge calls +22, probe calls +5 against native, for 10 searches saved." in text
    assert text.count("searches saved.") == 2
    assert "not priced" in text


def test_a_silver_replay_says_that_em_has_no_coverage():
    text = shown(render_replay(replay(recorded(probed=False), [Oracle()], resamples=50)))
    assert "truth answer_in_context: silver" in text
    assert "(4/9)" in text
    assert "Not decided" in text


def test_a_sweep_is_a_row_per_threshold():
    rows = [{"threshold": 0.5, "stops": 4.0, "unsafe": 1.0, "em": 0.25, "searches": 1.5, "judge_calls": 2.0}]
    none = [{"threshold": 9.0, "stops": 0.0, "unsafe": 0.0, "em": None, "searches": 3.0, "judge_calls": 3.0}]
    lines = [line.split() for line in shown(render_sweep(rows + none)).splitlines()]
    assert lines[2:] == [["0.5", "4", "1", "25.0", "25.0", "1.50", "2"], ["9", "0", "0", "–", "–", "3", "3"]]
