"""What doctor says of a dense retriever: Faiss, its encoder, its corpus and its index; nothing is loaded."""

import json
import sys

import pytest

from engine import readiness
from engine.config import DenseConfig, HashingConfig
from engine.finding import Status, examined
from engine.readiness import check_faiss, check_index
from engine.retrieve.index import build_index


@pytest.fixture
def config(tmp_path) -> DenseConfig:
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "1", "title": "Oslo", "text": "A city."}) + "\n")
    corpus = {"path": str(tmp_path / "corpus.jsonl")}
    return DenseConfig.model_validate(
        {"corpus": corpus, "index": str(tmp_path / "index"), "encoder": HashingConfig(dim=8)}
    )


def test_an_index_that_is_yet_to_be_built_and_one_that_fits(config):
    found = list(check_index(config))
    assert [finding.what for finding in found] == ["faiss", "retriever's encoder", "corpus", "index"]
    assert [finding.status for finding in found] == [Status.OK, Status.OK, Status.OK, Status.WARN]
    build_index(config)
    assert list(check_index(config))[-1].status is Status.OK
    (refused,) = examined("index", check_index, config.model_copy(update={"layout": "title_context"}))
    assert refused.status is Status.FAIL
    assert "title_context" in refused.found


def test_without_faiss_it_is_said_what_to_install(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    (refused,) = examined("index", check_index, config)
    assert refused.status is Status.FAIL
    assert "stopgap[cpu]" in refused.found


def test_a_faiss_without_avx2_is_a_warning(monkeypatch):
    import faiss

    monkeypatch.setattr(readiness.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(faiss, "get_compile_options", lambda: "GENERIC ")
    assert check_faiss().status is Status.WARN
    monkeypatch.setattr(readiness.platform, "machine", lambda: "aarch64")
    assert check_faiss().status is Status.OK
