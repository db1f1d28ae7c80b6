from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from engine.records import Passage
from engine.retrieve.stored_passage import json_to_passage, passage_to_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.builds(Passage, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=3).map(tuple)))
def test_a_passage_comes_back_as_it_was(passage):
    line = passage_to_json(passage)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json_to_passage(line) == passage
    assert json_to_passage(json.dumps(json.loads(line), indent=2, ensure_ascii=False)) == passage


def test_title_and_text_are_indexed_joined_by_a_space():
    assert json.loads(passage_to_json(Passage("1", "A title", "Its text.")))["contents"] == "A title Its text."
