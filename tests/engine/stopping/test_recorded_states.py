"""From trace rows to the states table, and what their calls cost."""

import pyarrow as pa
import pytest

from engine.config import ExperimentConfig
from engine.errors import DataError
from engine.records import Action, ParseStatus, Question, StopReason, Trace, Turn, Usage, Verdict
from engine.rows import trace_to_row
from engine.schema import TIMINGS, TRACES
from engine.stopping.recorded import judge_in_loop, run_rates, run_table, state_rows
from engine.stopping.states import states_of

PRICES = {"models": {"main": {"prompt_per_million": 1.0}, "small": {"prompt_per_million": 0.1}}, "per_retrieval": 0.01}


def experiment(loop, **changes):
    base = {
        "name": "t",
        "questions": {"path": "q"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}, "small": {"kind": "scripted"}},
        "truncate": {"kind": "fixed"},
        "extract": {"kind": "none"},
        "cost": PRICES,
        "roles": {"judge": "small", "reasoner": "main"},
    }
    return ExperimentConfig.model_validate(base | {"loop": {"kind": loop}} | changes)


def trace(name):
    used = {"reasoner": Usage(1, 10, 1), "judge": Usage(2, 20, 2), "retriever": Usage(1)}
    verdict = Verdict(False, (), 1.5, 0.8, ParseStatus.OK, "{}")
    turns = (
        Turn(0, verdict, "q", "model", action=Action.SEARCH, probe_answer="x", decided=used),
        Turn(1, None, action=Action.ANSWER, probe_answer="gold", decided=used),
    )
    question = Question(name, f"What is {name}?", ("gold",))
    return Trace(question, turns, "gold", "gold", StopReason.ANSWERED, 0, used, {"em": 1.0, "f1": 1.0})


def batches(*traces):
    return [pa.RecordBatch.from_pylist([trace_to_row(one)], schema=TRACES) for one in traces]


def test_states_come_through_rows_as_they_come_from_records():
    traces = [trace("a"), trace("b")]
    rows, roles = state_rows(batches(*traces))
    expected = [state for one in traces for state in states_of(one)]
    assert "context" not in rows.column_names
    for row, state in zip(rows.to_pylist(), expected, strict=True):
        assert row == {
            name: list(getattr(state, name)) if name == "golden_answers" else getattr(state, name) for name in row
        }
    assert roles == {"reasoner", "judge", "retriever"}
    table = run_table(rows, experiment("single"), "run")
    assert (table.ids, table.order.tolist()) == (("a", "b"), [0, 1, 0, 1])


def test_no_rows_are_no_states():
    rows, roles = state_rows([])
    assert roles == set()
    with pytest.raises(DataError, match="my-run: holds no state"):
        run_table(rows, experiment("single"), "my-run")


@pytest.mark.parametrize(
    ("loop", "judge", "asks"),
    [("s2g", {}, True), ("s2g", {"kind": "oracle"}, False), ("single", {}, False)],
)
def test_only_s2g_asks_a_model_on_its_own_account(loop, judge, asks):
    config = experiment(loop, judge=judge)
    assert judge_in_loop(config) is asks
    assert run_table(state_rows(batches(trace("a")))[0], config, "run").judge_in_loop is asks


def test_rates_are_the_prices_of_a_kind_and_its_mean_seconds_per_call():
    spent = [
        {"role": "judge", "calls": 4, "seconds": 9.0, "model_seconds": 2.0},
        {"role": "reasoner", "calls": 1, "seconds": 9.0, "model_seconds": 3.0},
        {"role": "extractor", "calls": 3, "seconds": 9.0, "model_seconds": 1.0},
    ]
    times = {"question_id": "a", "attempt": "a", "node": "n", "started_at": 0.0, "wall_s": 1.0, "roles": spent}
    timings = pa.Table.from_pylist([times], schema=TIMINGS)
    rates = run_rates(experiment("single"), {"reasoner", "judge", "extractor", "retriever"}, timings)
    assert {kind: price.prompt_per_million for kind, price in rates.tokens.items()} == {
        "judge": 0.1,
        "probe": 1.0,
        "loop": 1.0,
    }
    assert (rates.retrieval, rates.currency) == (0.01, "USD")
    assert rates.seconds == {"judge": 0.5, "loop": 1.0}
    mixed = run_rates(experiment("single", roles={"extractor": "small"}), {"reasoner", "extractor"}, None)
    assert "loop" not in mixed.tokens, "two prices have no sum"
    assert mixed.seconds == {}
