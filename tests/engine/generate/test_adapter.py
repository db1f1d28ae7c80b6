"""LoRA adapters made by peft, on the tiny model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_model import Reference, build_model, make_adapter

from engine.config import TransformersConfig
from engine.errors import BackendError, ConfigError
from engine.generate import Generation, GenerationRequest
from engine.generate.adapter import Adapter, check_targets, read_adapter
from engine.generate.transformers import TransformersGenerator

ASK = GenerationRequest(
    "judge", ({"role": "user", "content": "who directed the film?"},), 12, labels=(" true", " false")
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model(tmp_path_factory.mktemp("bases") / "tiny-instruct")


def edit(directory: Path, **changes: Any) -> Path:
    file = directory / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return directory


def load(base: Path, adapter: Path) -> TransformersGenerator:
    return TransformersGenerator(TransformersConfig(model=str(base), adapter=str(adapter), max_length=200))


def test_the_adapter_is_applied(base: Path, tmp_path: Path) -> None:
    import peft

    adapter = make_adapter(base, tmp_path / "adapter")
    reference = Reference(base)
    prompt = reference.prompt(ASK.messages)
    plain = reference.greedy(prompt, 12)
    reference.model = peft.PeftModel.from_pretrained(reference.model, adapter).eval()
    (got,) = load(base, adapter).generate([ASK])
    assert isinstance(got, Generation)
    want = reference.greedy(prompt, 12)
    labels = [reference.tokenizer.encode(label, add_special_tokens=False) for label in (" true", " false")]
    assert want != plain
    assert got.text == reference.tokenizer.decode(want, skip_special_tokens=True).rstrip("\ufffd")
    assert got.label_logprobs == pytest.approx([reference.log_probability(prompt, x) for x in labels], abs=1e-3)


def test_an_adapter_without_effect_is_an_error(base: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="changes nothing"):
        load(base, make_adapter(base, tmp_path, scale=0.0))


def test_an_adapter_of_another_base_is_refused_before_the_model_loads(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    adapter = edit(make_adapter(base, tmp_path), base_model_name_or_path="org/Other-3B")
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", None)
    with pytest.raises(ConfigError, match=r"was trained on 'org/Other-3B', but the model is '.*tiny-instruct'"):
        load(base, adapter)


def test_unknown_target_modules_are_refused_before_the_model_loads(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    adapter = edit(make_adapter(base, tmp_path), target_modules=["q_proj", "query_key_value"])
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", None)
    with pytest.raises(ConfigError, match=r"targets \['query_key_value'\], but the model's modules are .*'q_proj'"):
        load(base, adapter)


def test_an_adapter_of_another_shape_is_one_line(base: Path, tmp_path: Path) -> None:
    wide = build_model(tmp_path / "wide" / "tiny-instruct", hidden_size=48)
    with pytest.raises(ConfigError, match=r"does not fit the model: .*size mismatch") as caught:
        load(base, make_adapter(wide, tmp_path / "adapter"))
    assert "\n" not in str(caught.value)


def test_weights_missing_from_the_adapter_are_an_error(base: Path, tmp_path: Path) -> None:
    adapter = edit(make_adapter(base, tmp_path), target_modules=["q_proj", "v_proj", "down_proj", "up_proj"])
    with pytest.raises(ConfigError, match=r"differ in 4 weights, as .*up_proj"):
        load(base, adapter)


def written(directory: Path, **raw: Any) -> str:
    directory.mkdir(exist_ok=True)
    whole = {"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"], "base_model_name_or_path": "org/Base-1B"}
    (directory / "adapter_config.json").write_text(json.dumps(whole | raw))
    return str(directory)


def test_read_adapter(tmp_path: Path) -> None:
    directory = written(tmp_path, target_modules=["v_proj", "q_proj"], modules_to_save=["lm_head"])
    adapter = Adapter(tmp_path, "org/Base-1B", 8, ("q_proj", "v_proj"), ("lm_head",))
    assert read_adapter(directory, "org/Base-1B") == adapter


@pytest.mark.parametrize(
    ("trained_on", "model"),
    [
        ("org/Base-1B", "/models/base-1b/"),
        ("/home/me/.cache/huggingface/hub/models--org--Base-1B/snapshots/0a1b2c", "org/Base-1B"),
        ("HuggingFaceTB/MiniLM-L6", "mirror/minilm-l6"),
        ("some/all-MiniLM-L6-v2", "embedded:all-minilm-l6-v2"),
        (None, "org/Base-1B"),
    ],
)
def test_names_of_the_same_base(tmp_path: Path, trained_on: str | None, model: str) -> None:
    read_adapter(written(tmp_path, base_model_name_or_path=trained_on), model)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"peft_type": "IA3"}, "only LORA"),
        ({"r": 64}, r"rank r=64; it must be from 1 to 16 \(max_lora_rank\)"),
        ({"r": 0}, "rank r=0"),
        ({"base_model_name_or_path": "org/Base-3B"}, "trained on 'org/Base-3B'"),
    ],
)
def test_adapters_that_cannot_be_used(tmp_path: Path, raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_adapter(written(tmp_path, **raw), "org/Base-1B", max_rank=16)


def test_a_directory_without_adapter(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no adapter_config\.json"):
        read_adapter(str(tmp_path), "org/Base-1B")
    (tmp_path / "adapter_config.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        read_adapter(str(tmp_path), "org/Base-1B")


@pytest.mark.parametrize("targets", [("q_proj",), ("self_attn.q_proj",), r".*\.q_proj", "all-linear"])
def test_targets_that_are_there(targets: tuple[str, ...] | str) -> None:
    check_targets(Adapter(Path("a"), None, 8, targets), ["", "model.layers.0.self_attn.q_proj", "lm_head"])


@pytest.mark.parametrize("targets", [("proj",), r".*\.k_proj", ()])
def test_targets_that_are_not_there(targets: tuple[str, ...] | str) -> None:
    with pytest.raises(ConfigError, match="targets"):
        check_targets(Adapter(Path("a"), None, 8, targets), ["", "model.layers.0.self_attn.q_proj", "lm_head"])
