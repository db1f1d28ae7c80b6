"""Building a Lucene index directory in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import lucene_worker
import pytest
from inline_corpus import Digest, config_for, digest_of

from engine.errors import DataError, IndexMismatch, PreflightError, RunError
from engine.records import Passage
from engine.retrieve import fingerprint, jvm, lucene_index
from engine.retrieve.lucene_index import build_lucene, lucene_recipe


def test_a_build_is_counted_fingerprinted_and_searchable(tmp_path: Path, java_process, monkeypatch):
    part = 50
    monkeypatch.setattr(lucene_index, "PART", part)
    passages = [Passage(f"p{number}", f"Title {number}", f"word{number} text") for number in range(part + 3)]
    passages += [Passage("void", "", ""), Passage("blank", " ", " \n")]
    index, told = tmp_path / "index", []
    config, corpus = config_for(index), digest_of(passages)
    made = build_lucene(iter(passages), index, config, corpus, lambda *step: told.append(step))

    assert (made.n_docs, made.n_empty) == (part + 5, 2)
    assert made.versions == {"anserini": jvm.anserini_version()}
    assert made.corpus_path == "inline.jsonl"
    assert fingerprint.check(index, corpus, lucene_recipe()) == made
    assert {path.name for path in index.iterdir()} - set(made.files) == {"fingerprint.json", "write.lock"}
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert told[0] == ("write", 0, part + 5)
    assert ("write", part + 5, part + 5) in told
    assert told[-1] == ("index", part + 5, part + 5)
    for number in (0, part - 1, part, part + 2):
        (hits,) = java_process.submit(lucene_worker.search, config, [f"word{number}"], 5).result()
        assert [hit.passage for hit in hits] == [passages[number]]

    with pytest.raises(IndexMismatch, match="is there already"):
        build_lucene(iter(passages), index, config, corpus)


def test_two_builds_of_one_corpus_have_one_digest(tmp_path: Path):
    passages = [Passage("1", "a", "x"), Passage("2", "b", "y"), Passage("3", "", "")]
    one, two = (
        build_lucene(iter(passages), tmp_path / name, config_for(tmp_path / name, threads=threads), digest_of(passages))
        for name, threads in (("one", 1), ("two", 2))
    )
    assert one.digest == two.digest


def test_an_empty_corpus_gives_an_index_without_documents(tmp_path: Path, java_process):
    config = config_for(tmp_path / "index")
    assert build_lucene(iter(()), tmp_path / "index", config, Digest("0", 0)).n_docs == 0
    assert java_process.submit(lucene_worker.search, config, ["anything"], 5).result() == [[]]


def test_an_id_that_occurs_twice_is_an_error_and_leaves_nothing(tmp_path: Path):
    passages = [Passage("7", "a", "first"), Passage("8", "b", "other"), Passage("7", "a", "second")]
    with pytest.raises(DataError, match=r"inline\.jsonl: 1 passages have an id that occurred before"):
        build_lucene(iter(passages), tmp_path / "index", config_for(tmp_path / "index"), digest_of(passages))
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_that_changed_since_it_was_counted_is_an_error(tmp_path: Path):
    passages = [Passage("1", "a", "x")]
    with pytest.raises(DataError, match=r"gave 1 passages, but was counted to hold 2"):
        build_lucene(iter(passages), tmp_path / "index", config_for(tmp_path / "index"), Digest("0", 2))
    assert list(tmp_path.iterdir()) == []


def test_a_failing_indexer_is_told_in_one_line(tmp_path: Path, monkeypatch):
    jars = tmp_path / "path" / "pyserini" / "resources" / "jars"
    jars.mkdir(parents=True)
    (tmp_path / "path" / "pyserini" / "__init__.py").touch()
    (jars / "anserini-0.0.1-fatjar.jar").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    passages = [Passage("1", "a", "x")]
    with pytest.raises(RunError, match=r"indexer failed \(exit code 1\): .*no class io\.anserini\.index") as caught:
        build_lucene(iter(passages), tmp_path / "index", config_for(tmp_path / "index"), digest_of(passages))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "index").exists()


def test_java_and_heap_are_checked_before_a_passage_is_read(tmp_path: Path, monkeypatch):
    def passages():
        pytest.fail("read a passage")
        yield

    index = tmp_path / "index"
    with pytest.raises(PreflightError, match="heap"):
        build_lucene(passages(), index, config_for(index).model_copy(update={"heap": "much"}), Digest("0", 1))
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    with pytest.raises(PreflightError, match="JAVA_HOME=/nonexistent"):
        build_lucene(passages(), index, config_for(index), Digest("0", 1))


def test_a_build_killed_while_indexing_leaves_no_index(tmp_path: Path):
    code = (
        "import sys, pathlib\n"
        "from inline_corpus import Digest, config_for\n"
        "from engine.records import Passage\n"
        "from engine.retrieve.lucene_index import build_lucene\n"
        "index = pathlib.Path(sys.argv[1])\n"
        "passages = (Passage(str(n), 't', 'some words ' * 50) for n in range(20000))\n"
        "build_lucene(passages, index, config_for(index), Digest('0', 20000), lambda *step: print(*step, flush=True))\n"
    )
    index = tmp_path / "index"
    command = [sys.executable, "-c", code, str(index)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as build:
        assert build.stdout is not None
        for line in build.stdout:
            if line.startswith("index"):
                os.kill(build.pid, signal.SIGKILL)
                break
    assert build.returncode == -signal.SIGKILL
    assert not index.exists()
    time.sleep(0.5)
    passages = [Passage("1", "a", "x")]
    build_lucene(iter(passages), index, config_for(index), digest_of(passages))
    assert fingerprint.load(index).n_docs == 1
