"""Packed rows against one full forward pass per row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_model import Reference, build_model

from engine.generate.ragged import RaggedModel


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def reference(directory: Path) -> Reference:
    return Reference(directory)


@pytest.fixture(scope="module")
def packed(directory: Path) -> Callable[..., RaggedModel]:
    from transformers import AutoModelForCausalLM

    return lambda **settings: RaggedModel(AutoModelForCausalLM.from_pretrained(directory).eval(), **settings)


def numbers(seed: int, count: int) -> list[int]:
    return [(seed * 37 + i * 101) % 397 + 3 for i in range(count)]


def close(got: Any, want: Any) -> bool:
    return bool((got - want).abs().max() < 1e-4)


@pytest.mark.parametrize("pack", [1, 7, 512])
def test_rows_extended_unevenly_equal_full_forwards(
    packed: Callable[..., RaggedModel], reference: Reference, pack: int
) -> None:
    model = packed(pack=pack)
    whole = [numbers(1, 19), numbers(2, 5), numbers(3, 11)]
    rows = [model.start(19) for _ in whole]
    for cuts in ([(0, 6), (0, 1), (0, 9)], [(6, 7), (1, 4), (9, 10)], [(7, 19), (4, 5), (10, 11)]):
        logits = model.extend([(row, ids[a:b]) for row, ids, (a, b) in zip(rows, whole, cuts, strict=True)])
        for got, ids, (_, stop) in zip(logits, whole, cuts, strict=True):
            assert close(got, reference.logits(ids[:stop])[-1])
    assert [row.length for row in rows] == [19, 5, 11]


def test_a_fork_goes_its_own_way(packed: Callable[..., RaggedModel], reference: Reference) -> None:
    model = packed()
    row = model.start(12)
    model.extend([(row, numbers(1, 10))])
    other = model.fork(row, 4, 9)
    left, right = model.extend([(row, [7, 8]), (other, numbers(5, 5))])
    assert close(left, reference.logits([*numbers(1, 10), 7, 8])[-1])
    assert close(right, reference.logits(numbers(1, 10)[:4] + numbers(5, 5))[-1])


def test_size_counts_keys_and_values(packed: Callable[..., RaggedModel]) -> None:
    model = packed()
    row = model.start(10)
    model.extend([(row, [5, 6, 7])])
    layers, heads, capacity, width, sizes = 2, 2, 10, 8, 4
    assert model.size(row) == 2 * layers * heads * capacity * width * sizes


def test_sliding_windows_are_kept(tmp_path: Path) -> None:
    import torch
    from tiny_model import build_tokenizer
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(1)
    settings = MistralConfig(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=6,
        initializer_range=0.4,
    )
    MistralForCausalLM(settings).save_pretrained(tmp_path)
    build_tokenizer().save_pretrained(tmp_path)
    reference = Reference(tmp_path)
    model = RaggedModel(MistralForCausalLM.from_pretrained(tmp_path).eval())
    ids = numbers(4, 17)
    row = model.start(17)
    for start, stop in ((0, 9), (9, 10), (10, 17)):
        (got,) = model.extend([(row, ids[start:stop])])
        assert close(got, reference.logits(ids[:stop])[-1])
    full = Reference(tmp_path)
    full.model.config.sliding_window = None
    assert not close(got, full.logits(ids)[-1])


def test_agrees_tells_models_that_pack_from_those_that_do_not(packed: Callable[..., RaggedModel]) -> None:
    import torch
    from transformers import Gemma2Config, Gemma2ForCausalLM

    assert packed().agrees(numbers(1, 12), tolerance=1e-4)
    capped = Gemma2Config(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    assert not RaggedModel(Gemma2ForCausalLM(capped).eval()).agrees(numbers(1, 12), tolerance=1e-4)
