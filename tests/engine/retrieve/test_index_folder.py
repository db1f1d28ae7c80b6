"""An index directory is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import IndexMismatch
from engine.retrieve.index_folder import new_index


def test_the_index_appears_when_the_block_ends(tmp_path: Path):
    target = tmp_path / "deep" / "index"
    with new_index(target) as (index, scratch):
        (index / "data").write_text("x")
        (scratch / "rest").write_text("y")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["data"]
    assert [path.name for path in target.parent.iterdir()] == ["index"]


def test_an_error_leaves_nothing(tmp_path: Path):
    def fail() -> None:
        with new_index(tmp_path / "index") as (index, _):
            (index / "data").write_text("x")
            raise KeyError("boom")

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_index_is_never_overwritten(tmp_path: Path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "data").write_text("old")
    with pytest.raises(IndexMismatch, match="is there already"), new_index(tmp_path / "index"):
        pytest.fail("the block must not run")
    assert (tmp_path / "index" / "data").read_text() == "old"


def test_an_empty_folder_is_filled(tmp_path: Path):
    (tmp_path / "index").mkdir()
    with new_index(tmp_path / "index") as (index, _):
        (index / "data").write_text("x")
    assert (tmp_path / "index" / "data").read_text() == "x"


def test_the_faster_of_two_builds_wins(tmp_path: Path):
    def slower() -> None:
        with new_index(tmp_path / "index") as (index, _):
            (index / "data").write_text("slower")
            with new_index(tmp_path / "index") as (other, _):
                (other / "data").write_text("faster")

    with pytest.raises(IndexMismatch, match="another build was faster"):
        slower()
    assert (tmp_path / "index" / "data").read_text() == "faster"
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_killed_build_leaves_no_index_and_the_next_one_tidies_up(tmp_path: Path):
    code = (
        "import sys, time, pathlib\n"
        "from engine.retrieve.index_folder import new_index\n"
        "with new_index(pathlib.Path(sys.argv[1])) as (index, scratch):\n"
        "    (index / 'data').write_text('half')\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    target = tmp_path / "index"
    command = [sys.executable, "-c", code, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as build:
        assert build.stdout is not None
        assert build.stdout.readline() == "ready\n"
        os.kill(build.pid, signal.SIGKILL)
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 1
    with new_index(target) as (index, _):
        (index / "data").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert (target / "data").read_text() == "whole"


def test_a_living_build_is_not_tidied_away(tmp_path: Path):
    with new_index(tmp_path / "index") as (index, _):
        with pytest.raises(KeyError), new_index(tmp_path / "index"):
            raise KeyError("the second one gives up")
        (index / "data").write_text("x")
    assert (tmp_path / "index" / "data").read_text() == "x"
