"""Passages written to a file and read back by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import IndexMismatch
from engine.records import Passage
from engine.retrieve.passage_store import PassageStore, read_block, write_passages

PASSAGES = [
    Passage("7", "Ångström", "A unit of length.", ("A unit", "of length.")),
    Passage("a b", "", "no title\nand two lines"),
    Passage("x", "only a title", ""),
    Passage("emoji", "🦦", "otter 🦦"),
    Passage("5", "five", "5"),
]


def store(folder: Path, passages: list[Passage], block: int) -> Path:
    path = folder / "passages.arrow"
    with path.open("wb") as file:
        assert write_passages(iter(passages), file, block) == len(passages)
    return path


@pytest.mark.parametrize("block", [1, 2, 3, 5, 9])
def test_every_row_comes_back_whatever_the_block(tmp_path, block):
    path = store(tmp_path, PASSAGES, block)
    opened = PassageStore(path)
    assert len(opened) == 5
    assert opened.blocks == -(-5 // block)
    for row in (4, 0, 3, 1, 2, 0):
        assert opened.passage(row) == PASSAGES[row]
        assert opened.id(row) == PASSAGES[row].id
    blocks = [read_block(path, number) for number in range(opened.blocks)]
    assert [passage for read in blocks for passage in read] == PASSAGES
    assert [len(read) for read in blocks[:-1]] == [block] * (opened.blocks - 1)


def test_a_store_of_nothing(tmp_path):
    assert len(PassageStore(store(tmp_path, [], 4))) == 0


def test_progress_is_told_after_each_block(tmp_path):
    told: list[int] = []
    with (tmp_path / "p").open("wb") as file:
        write_passages(iter(PASSAGES), file, 2, told.append)
    assert told == [2, 4, 5]


def test_a_file_that_is_cut_or_absent_is_no_index(tmp_path):
    path = store(tmp_path, PASSAGES, 2)
    path.write_bytes(path.read_bytes()[:-40])
    for bad in (path, tmp_path / "absent"):
        with pytest.raises(IndexMismatch, match="build the index again"):
            PassageStore(bad)
