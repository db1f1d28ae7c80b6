import numpy as np
import pytest
from truncation_lists import assert_equal_on_random_lists

from engine.truncate.fixed import fixed


def test_keeps_at_most_the_list():
    assert fixed(np.zeros((3, 8)), np.array([0, 4, 8]), k=6).tolist() == [0, 4, 6]
    assert fixed(np.zeros((3, 8)), np.array([0, 4, 8]), k=0).tolist() == [0, 0, 0]


def test_equals_its_definition():
    assert_equal_on_random_lists(fixed, lambda s, k: min(k, len(s)), [{"k": k} for k in (0, 1, 6, 20)])


def test_a_negative_k_is_refused():
    with pytest.raises(ValueError, match=r"fixed\.k: .* found -1"):
        fixed(np.zeros((1, 1)), np.array([1]), k=-1)
