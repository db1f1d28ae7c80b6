"""The prefix cache over a stand-in model whose rows are lists of tokens of one byte each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from engine.generate.prefixes import PrefixCache, common_prefix


@dataclass
class Row:
    tokens: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.tokens)


class Rows:
    """Counts the tokens that had to be computed."""

    def __init__(self) -> None:
        self.computed = 0

    def start(self, capacity: int) -> Row:
        return Row()

    def fork(self, row: Row, length: int, capacity: int) -> Row:
        assert length <= capacity
        return Row(row.tokens[:length])

    def size(self, row: Row) -> int:
        return row.length

    def extend(self, work: Sequence[tuple[Row, Sequence[int]]]) -> None:
        for row, tokens in work:
            self.computed += len(tokens)
            row.tokens += tokens


def arrays(*sequences: Sequence[int]) -> list[np.ndarray]:
    return [np.asarray(tokens, dtype=np.int64) for tokens in sequences]


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [([], 0), ([[1, 2]], 2), ([[1, 2, 3], [1, 2]], 2), ([[1, 2, 3], [1, 9, 3], [1, 2, 3]], 1), ([[1], []], 0)],
)
def test_common_prefix(sequences: list[list[int]], expected: int) -> None:
    assert common_prefix(arrays(*sequences)) == expected


def full(cache: PrefixCache, tokens: list[int]) -> Row:
    row = cache.begin(tokens, len(tokens) + 4)
    cache.model.extend([(row, tokens[row.length :])])
    cache.add(tokens, row)
    return row


def test_a_prompt_begins_with_what_is_known_of_it() -> None:
    cache = PrefixCache(Rows(), 1000)
    base = list(range(40))
    full(cache, base)
    assert cache.begin([*base[:30], 99, 98], 40).tokens == base[:30]
    assert cache.begin([*base, 1, 2], 50).tokens == base
    assert cache.begin([9, 9, 9], 40).tokens == []


def test_one_token_is_always_left_to_compute() -> None:
    cache = PrefixCache(Rows(), 1000)
    full(cache, list(range(40)))
    assert cache.begin(list(range(40)), 40).length == 39


def test_a_short_match_is_not_worth_a_copy() -> None:
    cache = PrefixCache(Rows(), 1000)
    full(cache, list(range(40)))
    assert cache.begin([*range(15), 99], 40).length == 0
    assert cache.begin([*range(16), 99], 40).length == 16


def test_share_computes_the_common_part_once() -> None:
    rows = Rows()
    cache = PrefixCache(rows, 10_000)
    prompts = [[*range(100), 200 + i, *range(5)] for i in range(8)]
    assert cache.share(prompts) == 100
    assert cache.share(prompts) == 0
    for prompt in prompts:
        full(cache, prompt)
    assert rows.computed == 100 + 8 * 6


def test_share_builds_on_what_is_known() -> None:
    rows = Rows()
    cache = PrefixCache(rows, 10_000)
    full(cache, list(range(50)))
    assert cache.share([[*range(90), 1], [*range(90), 2]]) == 40
    assert cache.share([[*range(95), 1], [*range(95), 2]]) == 0


@pytest.mark.parametrize("prompts", [[], [list(range(90))], [[1, *range(90)], [2, *range(90)]]])
def test_nothing_in_common_is_not_shared(prompts: list[list[int]]) -> None:
    rows = Rows()
    assert PrefixCache(rows, 1000).share(prompts) == 0
    assert rows.computed == 0


def test_the_least_recently_used_prompt_is_dropped_first() -> None:
    cache = PrefixCache(Rows(), 100)
    first, second, third = ([k, *range(39)] for k in (1, 2, 3))
    full(cache, first)
    full(cache, second)
    cache.begin([*first, 7], 50)
    full(cache, third)
    assert cache.bytes == 80
    assert [cache.begin([*p, 7], 50).length for p in (first, second, third)] == [40, 0, 40]


def test_without_memory_nothing_is_kept() -> None:
    rows = Rows()
    cache = PrefixCache(rows, 0)
    assert cache.share([list(range(90)), list(range(91))]) == 0
    full(cache, list(range(90)))
    assert cache.begin(list(range(90)), 90).length == 0


def test_clear_forgets() -> None:
    cache = PrefixCache(Rows(), 1000)
    full(cache, list(range(40)))
    cache.clear()
    assert cache.bytes == 0
    assert cache.begin(list(range(40)), 40).length == 0
