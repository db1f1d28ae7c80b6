"""What VllmGenerator says before any engine starts; none of this needs vLLM."""

import json
import sys

import pytest

from engine.config import VllmConfig
from engine.errors import ConfigError, PreflightError
from engine.generate.vllm import VllmGenerator
from engine.generate.vllm_engine import lora_id


@pytest.fixture
def adapter(tmp_path):
    def write(**fields):
        described = {"peft_type": "LORA", "base_model_name_or_path": "org/tiny", "r": 8, "target_modules": ["q_proj"]}
        (tmp_path / "adapter_config.json").write_text(json.dumps({**described, **fields}))
        (tmp_path / "adapter_model.safetensors").write_bytes(b"weights")
        return str(tmp_path)

    return write


def start(directory, **fields):
    VllmGenerator(VllmConfig(model="/models/tiny", adapter=directory, **fields))


@pytest.mark.parametrize(
    ("fields", "needed", "found"),
    [
        ({"r": 64}, "from 1 to 16", "r=64"),
        ({"base_model_name_or_path": "org/other"}, "/models/tiny", "org/other"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save", "lm_head"),
        ({"peft_type": "IA3"}, "LORA", "IA3"),
    ],
)
def test_an_adapter_that_cannot_be_served_is_told_in_one_line(adapter, fields, needed, found):
    with pytest.raises(ConfigError) as caught:
        start(adapter(**fields))
    message = str(caught.value)
    assert needed in message
    assert found in message
    assert "\n" not in message


def test_a_missing_vllm_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(PreflightError, match=r"needs the package vllm.*pip install 'stopgap\[gpu\]'") as caught:
        start(None)
    assert "\n" not in str(caught.value)


def test_the_lora_id_is_stable_and_follows_place_and_content(adapter, tmp_path):
    directory = adapter()
    first = lora_id(directory)
    assert first == lora_id(directory)
    assert 0 < first < 2**31
    (tmp_path / "adapter_model.safetensors").write_bytes(b"other weights")
    changed = lora_id(directory)
    assert changed != first
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        (elsewhere / file).write_bytes((tmp_path / file).read_bytes())
    assert lora_id(str(elsewhere)) not in {first, changed}
