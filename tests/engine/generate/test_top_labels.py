from types import SimpleNamespace

import pytest

from engine.generate.top_labels import label_logprobs

PREFIX, LABELS = '{"sufficient":', (" true", " false")


def entry(text, **top):
    return SimpleNamespace(
        token=text, top_logprobs=[SimpleNamespace(token=t.replace("_", " "), logprob=p) for t, p in top.items()]
    )


def test_other_spacing_of_the_same_object_is_the_same_place():
    tokens = [entry("{\n "), entry('"sufficient"'), entry(" :\n"), entry("true", true=-0.5, false=-1.0)]
    assert label_logprobs(tokens, PREFIX, LABELS) == (-0.5, -1.0)


def test_a_space_of_its_own_before_the_label_is_passed_over():
    tokens = [entry(PREFIX), entry(" ", true=-3.0, false=-3.0), entry("false", true=-2.0, false=-0.1)]
    assert label_logprobs(tokens, PREFIX, LABELS) == (-2.0, -0.1)


def test_a_label_that_comes_in_pieces_is_judged_by_its_first():
    tokens = [entry(PREFIX), entry(" t", _t=-0.2, _f=-1.5), entry("rue", rue=0.0)]
    assert label_logprobs(tokens, PREFIX, LABELS) == (-0.2, -1.5)


def test_a_token_that_goes_on_after_the_label_counts_for_it():
    tokens = [SimpleNamespace(token=PREFIX, top_logprobs=[])]
    listed = [(" true,", -0.3), (" false}", -1.2), (" trueish", -0.1)]
    tokens.append(
        SimpleNamespace(token=" true,", top_logprobs=[SimpleNamespace(token=t, logprob=p) for t, p in listed])
    )
    assert label_logprobs(tokens, PREFIX, LABELS) == (-0.3, -1.2)


@pytest.mark.parametrize(
    "tokens",
    [
        None,
        [],
        [entry(PREFIX), entry(" true", _true=-0.1, _maybe=-3.0)],
        [entry(PREFIX), entry(" true")],
        [entry("Sure! "), entry(PREFIX), entry(" true", _true=-0.1, _false=-3.0)],
        [entry(PREFIX), entry(" null", _true=-0.1, _false=-3.0), entry(" true", _true=-0.1, _false=-3.0)],
        [entry('{"sufficient": true', _true=-0.1, _false=-3.0)],
    ],
    ids=["no log-probs", "empty", "one label", "nothing listed", "text before", "no label there", "label not apart"],
)
def test_nothing_is_invented(tokens):
    assert label_logprobs(tokens, PREFIX, LABELS) is None


def test_an_empty_prefix_is_the_first_token():
    assert label_logprobs([entry("yes", yes=-0.1, no=-2.5)], "", ("yes", "no")) == (-0.1, -2.5)
