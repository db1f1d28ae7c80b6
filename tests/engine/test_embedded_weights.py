from pathlib import Path

import pytest

from engine.embedded import resolve, weight_bytes
from engine.errors import ConfigError


def test_an_embedded_model_has_the_size_of_its_weights():
    model = "embedded:all-minilm-l6-v2"
    assert weight_bytes(model) == (Path(resolve(model)) / "model.safetensors").stat().st_size
    assert weight_bytes("embedded:smollm2-135m-instruct") == pytest.approx(134_515_008 * 4, rel=0.001)
    with pytest.raises(ConfigError, match="unknown embedded model"):
        weight_bytes("embedded:none")


def test_a_directory_has_the_size_of_its_weight_files_alone(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"x" * 300)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.bin").write_bytes(b"x" * 40)
    (tmp_path / "tokenizer.json").write_bytes(b"x" * 9000)
    assert weight_bytes(str(tmp_path)) == 340


@pytest.mark.parametrize("model", ["nobody/no-such-model", "/no/such/folder", "not a name"])
def test_what_is_not_on_this_machine_counts_nothing(model):
    assert weight_bytes(model) == 0


def test_a_model_in_the_hub_cache_has_the_size_of_its_snapshot(monkeypatch, tmp_path):
    from huggingface_hub import constants

    repository = tmp_path / "models--some--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"x" * 123)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert weight_bytes("some/model") == 123
