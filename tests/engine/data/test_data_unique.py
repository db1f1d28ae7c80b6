"""Duplicate ids are reported with both places; chance collisions are not."""

import re
from collections.abc import Callable, Iterator

import pytest

from engine.data import unique, unique_ids
from engine.data.place import Place
from engine.errors import DataError
from engine.records import Passage


def source(*ids: str) -> tuple[Callable[[], Iterator[tuple[Place, Passage]]], list[int]]:
    passes: list[int] = []

    def read() -> Iterator[tuple[Place, Passage]]:
        passes.append(1)
        for number, identity in enumerate(ids, 1):
            yield Place("c.jsonl", "line", number), Passage(identity, "", "")

    return read, passes


def test_different_ids_pass_in_one_reading() -> None:
    read, passes = source("a", "b", "A", "aa", "")
    assert [item.id for item in unique_ids(read)] == ["a", "b", "A", "aa", ""]
    assert len(passes) == 1
    assert list(unique_ids(source()[0])) == []


def test_a_duplicate_is_reported_at_the_end_with_both_lines() -> None:
    read, _ = source("a", "b", "c", "b", "d")
    seen: list[str] = []
    with pytest.raises(DataError, match=r"^c\.jsonl: id 'b' is used twice, at line 2 and line 4; ids must be unique"):
        seen.extend(item.id for item in unique_ids(read))
    stream = unique_ids(read)
    assert [next(stream).id for _ in range(5)] == ["a", "b", "c", "b", "d"]
    with pytest.raises(DataError):
        next(stream)


def test_further_duplicates_are_counted() -> None:
    read, _ = source("a", "b", "c", "b", "a", "c", "a")
    with pytest.raises(DataError, match="id 'b' is used twice, at line 2 and line 4; 2 more ids repeat;"):
        list(unique_ids(read))


def test_a_whole_file_twice_is_found_with_few_ids_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unique, "_SUSPECTS", 2)
    read, _ = source(*[str(n) for n in range(50)] * 2)
    with pytest.raises(DataError, match=r"at line \d+ and line \d+; 49 more ids repeat") as caught:
        list(unique_ids(read))
    first, second = map(int, re.findall(r"line (\d+)", str(caught.value)))
    assert second == first + 50


def test_equal_hashes_of_different_ids_are_no_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unique, "_hash", lambda identity: identity[:1].encode() * 8)
    read, passes = source("aa", "ab", "b")
    assert [item.id for item in unique_ids(read)] == ["aa", "ab", "b"]
    assert len(passes) == 2
    read, _ = source("aa", "ab", "b", "ab")
    with pytest.raises(DataError, match="id 'ab' is used twice, at line 2 and line 4"):
        list(unique_ids(read))
