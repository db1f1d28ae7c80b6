import threading

import pyarrow as pa
import pytest

from cluster.plan import Plan, read_shard, write_plan
from cluster.rundir import RunDir
from cluster.store import open_store
from engine.errors import DataError
from engine.records import (
    Category,
    ErrorInfo,
    Gap,
    Question,
    StopReason,
    SupportingFact,
    Trace,
    Turn,
    Verdict,
)
from engine.rows import row_to_trace, trace_to_row
from engine.schema import TRACES


@pytest.fixture(params=["local", "memory"])
def location(request, tmp_path):
    return str(tmp_path / "run") if request.param == "local" else f"memory://runs/{tmp_path.name}"


def row(question_id, turns=(), error=None, answer="a"):
    question = Question(question_id, "Q?", ("a",), (SupportingFact("T", None, None),), {"type": "bridge"})
    reason = StopReason.ERROR if error else StopReason.SUFFICIENT
    return trace_to_row(Trace(question, turns, answer, "Answer: a", reason, 1, {}, {"em": 1.0}, error))


def test_the_first_writer_wins_and_a_later_attempt_changes_nothing(location):
    run = RunDir(location)
    first = run.commit(0, "s0", [row("q1"), row("q2")], [])
    digest = run.digest()
    second = run.commit(0, "s0", [row("q1", answer="other"), row("q2")], [])
    assert second == first
    assert run.digest() == digest
    assert [r["answer"] for batch in run.batches() for r in batch.to_pylist()] == ["a", "a"]


def test_concurrent_attempts_leave_one_shard(location):
    run = RunDir(location)
    threads = [
        threading.Thread(target=lambda i=i: run.commit(0, "s0", [row("q1", answer=str(i))], [])) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(run.receipts()) == 1
    assert run.store.names("traces") == ["traces/s0.parquet"]


def test_traces_without_a_receipt_do_not_count(location):
    run = RunDir(location)
    run.store.publish("traces/s9.parquet", b"half a file")
    assert run.receipts() == {}
    assert list(run.batches()) == []


def test_shards_of_nulls_and_of_everything_have_one_schema(location):
    run = RunDir(location)
    gap = Gap(Category.RELATION, "A", "b", "c")
    run.commit(0, "s0", [row("q1", (Turn(0, Verdict(True)),))], [])
    failing = row("q2", (Turn(0, Verdict(False, (gap,), 0.5, 0.6)),), ErrorInfo("CallTimeout", "late"), None)
    receipt = run.commit(1, "s1", [failing], [])
    assert receipt.errors == 1
    table = pa.Table.from_batches(list(run.batches()))
    assert table.schema == TRACES
    assert table.num_rows == 2
    back = row_to_trace(table.to_pylist()[1])
    assert back.turns[0].verdict.gaps == (gap,)
    assert trace_to_row(back) == failing


def test_a_folder_that_is_no_run_is_said_so(tmp_path):
    with pytest.raises(DataError, match="is not a run"):
        RunDir(str(tmp_path)).manifest()


def test_plan_cuts_the_set_into_shards_that_are_read_alone(tmp_path):
    questions = [Question(f"q{i}", f"text {i}", ("a",), (SupportingFact("T", "d", 2),), {"k": i}) for i in range(70)]
    plan = write_plan(iter(questions), 32, tmp_path)
    assert (plan.n_questions, len(plan.contents)) == (70, 3)
    store = open_store(str(tmp_path))
    assert [q for shard in range(3) for q in read_shard(store, shard)] == questions
    again = write_plan(iter(questions), 32, tmp_path / "again")
    assert again == plan
    changed = [*questions[:-1], Question("q69", "text 69", ("b",), questions[69].supporting, {"k": 69})]
    assert write_plan(iter(changed), 32, tmp_path / "changed").digest != plan.digest


def test_shard_ids_depend_on_the_run_and_the_questions():
    plan = Plan("d", 2, ("x", "y"))
    assert len({plan.shard_id("run1", 0), plan.shard_id("run1", 1), plan.shard_id("run2", 0)}) == 3
    assert plan.shard_id("run1", 0) == Plan("other", 1, ("x",)).shard_id("run1", 0)


def test_an_empty_question_set_is_an_error(tmp_path):
    with pytest.raises(DataError, match="empty"):
        write_plan([], 32, tmp_path)
