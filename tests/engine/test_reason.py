import pytest

from engine.config import ReasonConfig
from engine.reason import PREFIX, read_answer, reason_request


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: Porto", "Porto"),
        ("Answer:Porto", "Porto"),
        ("Answer:  Porto \n", "Porto"),
        ("Answer:\nPorto", "Porto"),
        ("I think so.\nAnswer: Porto", "Porto"),
        ("Answer: Porto\nIt is a city.", "Porto"),
        ("Answer: Porto\nRationale: Ana Bel was born there.", "Porto"),
        ("Answer: Porto Rationale: Ana Bel was born there.", "Porto"),
        ("Answer: Porto\nrationale: in small letters", "Porto"),
        ("Answer: Lisbon\nAnswer: Porto", "Porto"),
        ("Answer: Answer: Porto", "Porto"),
        ('Answer: "Porto"', "Porto"),
        ("Answer: 'Porto'.", "Porto"),
        ('Answer: "Porto."', "Porto"),
        ("Answer: `Porto`", "Porto"),
        ("Answer: 3.5", "3.5"),
        ("Answer: St. John's", "St. John's"),
        ("Answer: yes.", "yes"),
        ("Porto", "Porto"),
        ("Porto\nand more", "Porto"),
        ("Porto\nRationale: no label", "Porto"),
        ("", ""),
        ("Answer:", ""),
        ("Answer: \n", ""),
        ("Answer:\nRationale: nothing was found", ""),
        (" \n ", ""),
        ('Answer: ""', ""),
    ],
)
def test_the_answer_of_a_reply(text, answer):
    assert read_answer(text) == answer


def test_the_answer_is_read_from_the_reply_alone():
    # The prompt holds an `Answer:` label too; what it names must never come back as the answer.
    request = reason_request("What does 'Answer: 42' mean?", "- Answer: Lisbon", ReasonConfig())
    assert "Answer: 42" in request.messages[-1]["content"]
    assert read_answer(f"{request.prefix} Porto") == "Porto"
    assert read_answer(request.prefix) == ""


def test_the_request_shows_evidence_and_question_and_stops_at_the_line():
    request = reason_request("Where?", "[Ana]\n- Born in Porto.", ReasonConfig(max_tokens=17))
    text = request.messages[-1]["content"]
    assert text.startswith("EVIDENCE\n[Ana]\n- Born in Porto.\n\nQUESTION\nWhere?")
    assert (request.role, request.max_tokens, request.prefix) == ("reasoner", 17, PREFIX)
    assert request.stop == ("\n",)
    assert "Rationale" not in "".join(message["content"] for message in request.messages)


def test_a_rationale_is_asked_for_and_has_room_for_its_line():
    request = reason_request("Where?", "", ReasonConfig(rationale=True))
    assert "Rationale:" in "".join(message["content"] for message in request.messages)
    assert request.stop == ()


def test_no_evidence_is_said_so():
    assert "EVIDENCE\n(none was found)" in reason_request("Where?", "", ReasonConfig()).messages[-1]["content"]
