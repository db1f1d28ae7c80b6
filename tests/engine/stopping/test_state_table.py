"""States as columns: what is read, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from state_rows import arrow, question, table

from engine.errors import DataError
from engine.stopping.state_table import COLUMNS, NO_ANSWER, read_state_table, state_table


def test_rows_in_any_order_become_columns_in_order():
    rows = arrow(question("b", "010", 1, scores=[0.5, 1.5]), question("a", "1", 0))
    found = state_table(rows.take([3, 2, 1, 0]))
    assert found.ids == ("a", "b")
    assert found.question.tolist() == [0, 1, 1, 1]
    assert found.order.tolist() == [0, 0, 1, 2]
    assert found.eligible.tolist() == [False, True, True, False]
    assert found.probe_em.tolist() == [1, 0, 1, 0]
    np.testing.assert_array_equal(found.score, [np.nan, 0.5, 1.5, np.nan])
    assert found.native_em.tolist() == [0, 1]
    assert found.native_retrievals.tolist() == [0, 2]
    assert found.native_loop[:, 0].tolist() == [2, 4]
    assert found.first.tolist() == [0, 1]
    assert found.last.tolist() == [0, 3]
    assert found.own("judge")[:, 1].tolist() == [100, 100, 100, 100]


def test_nulls_are_not_a_number_and_false_for_flags():
    rows = question("a", "-0", 1, judge_prompt_tokens=[None, 7], eligible=[None, False])
    found = table(rows)
    assert np.isnan(found.probe_em).tolist() == [True, False]
    assert np.isnan(found.spent["judge"]).tolist() == [[False, True, False], [False, False, False]]
    assert not found.eligible.any()
    assert np.isnan(found.retrieval_complete).all()


def test_answers_are_numbered_as_they_are_compared():
    asked = ["The Anna!", "anna", None, "...", "Bo"]
    found = table(question("a", "00000", 1, probe_answer=asked))
    assert found.answer[0] == found.answer[1] != found.answer[4]
    assert found.answer[2] == found.answer[3] == NO_ANSWER


def test_closed_questions_have_only_yes_and_no_for_gold():
    found = table(
        question("a", "0", 1, golds=["Yes."]),
        question("b", "0", 1, golds=["yes", "Bo"]),
        question("c", "0", 1, golds=[]),
    )
    assert found.closed.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*question("a", "01", 1), *question("a", "0", 1, searches=1)], "'a' has two states of number 0"),
        (question("a", "010", 1)[::2], "'a' goes from state 0 to state 2"),
        (question("b", "01", 1)[1:], "'b' begins with state 1"),
        (question("a", "01", 1, native_answer=["x", "y"]), "'a' has two values of native_answer"),
        (question("a", "01", 1, native_em=[None, 1.0]), "'a' has two values of native_em"),
        (question("a", "01", 1, golden_answers=[["x"], ["y"]]), "'a' has two values of golden_answers"),
        (question("a", "01", 1, judge_calls=[0, None]), "a state has no judge_calls"),
        ([], "holds no state"),
    ],
)
def test_states_that_cannot_be_replayed_are_refused_by_name(rows, message):
    with pytest.raises(DataError, match=rf"here: .*{message}"):
        state_table(arrow(rows), source="here")


def test_a_selection_keeps_all_columns_of_its_questions():
    whole = table(question("a", "01", 1), question("b", "100", 0, scores=[1, 2]), question("c", "1", 1))
    part = whole.select(np.array([False, True, True]))
    alone = table(question("b", "100", 0, scores=[1, 2]), question("c", "1", 1))
    for name in ("question", "order", "score", "eligible", "probe_em", "native_em", "native_loop", "closed"):
        np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))
    assert part.ids == alone.ids
    np.testing.assert_array_equal(part.spent["probe"], alone.spent["probe"])


def test_a_file_without_its_contexts_will_do_and_another_is_refused(tmp_path):
    path = tmp_path / "states.parquet"
    pq.write_table(arrow(question("a", "01", 1)).select(COLUMNS), path)
    assert read_state_table(path).states == 2
    pq.write_table(pa.table({"question_id": ["a"]}), path)
    with pytest.raises(DataError, match="not a states table, it has no column 'question'"):
        read_state_table(path)
    path.write_text("text")
    with pytest.raises(DataError, match="cannot be read as a states table"):
        read_state_table(path)
