import math
import re

import numpy as np
import pytest

from engine.stopping.decision import decide


def changes(n, lost, gained):
    """(native, policy) EM of n questions, of which so many are lost and gained."""
    native = np.arange(n) < n // 2
    policy = native.copy()
    policy[:lost], policy[n - gained :] = False, True
    return native.astype(float), policy.astype(float)


def fewer_searches(n, saved):
    return np.full(n, 3.0), np.where(np.arange(n) < saved, 2.0, 3.0)


def test_both_must_pass():
    good, cheap = changes(400, 1, 1), fewer_searches(400, 40)
    assert decide(*good, *cheap).passes
    bad_quality = decide(*changes(400, 20, 0), *cheap)
    assert (bad_quality.not_worse, bad_quality.cheaper, bad_quality.passes) == (False, True, False)
    no_saving = decide(*good, *fewer_searches(400, 0))
    assert (no_saving.not_worse, no_saving.cheaper, no_saving.passes) == (True, False, False)
    dearer = decide(*good, *fewer_searches(400, 40)[::-1])
    assert not dearer.cheaper


def test_the_margin_is_a_strict_bound_of_the_interval():
    found = decide(*changes(400, 8, 0), *fewer_searches(400, 40))
    low = found.em.difference.low
    assert low < -0.02 < found.em.difference.mean + 1e-12
    assert not found.not_worse
    assert decide(*changes(400, 8, 0), *fewer_searches(400, 40), margin=-low + 1e-9).not_worse
    assert not decide(*changes(400, 8, 0), *fewer_searches(400, 40), margin=-low).not_worse


def test_the_sentence():
    found = decide(*changes(800, 6, 1), *fewer_searches(800, 77)).sentence
    assert re.fullmatch(
        r"The policy passes\. EM −0\.6 points \[−1\.[24], 0\.0\], above the margin of −2\.0: not worse\. "
        r"Searches −0\.0963 per question \[−0\.1\d*, −0\.0\d*\], below 0: cheaper\.",
        found,
    )
    failing = decide(*changes(800, 80, 1), *fewer_searches(800, 0)).sentence
    assert failing.startswith("The policy does not pass.")
    assert "not above the margin of −2.0: may be worse" in failing
    assert "not below 0: not shown to be cheaper" in failing


def test_nothing_is_decided_on_a_part_of_the_questions():
    native, policy = changes(400, 0, 0)
    native[3] = math.nan
    found = decide(native, policy, *fewer_searches(400, 100))
    assert not found.passes
    assert found.sentence == "Not decided: only 399 of 400 questions have both figures of both sides."
    single = decide([1.0], [1.0], [3.0], [2.0])
    assert not single.passes
    assert single.sentence == "Not decided: 1 questions are too few for an interval."
    assert not decide([], [], [], []).passes


def test_wrong_input():
    with pytest.raises(ValueError, match="got 1 and 2"):
        decide([1.0], [1.0, 0.0], [1.0], [1.0])
    with pytest.raises(ValueError, match="EM of 1 questions and searches of 2"):
        decide([1.0], [1.0], [1.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="margin must be within"):
        decide([1.0], [1.0], [1.0], [1.0], margin=2)
