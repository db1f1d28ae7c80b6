"""From one GGUF file of a Llama-type model to the directory that Hugging Face libraries load."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FORMAT = "f32a"
"""Names what `convert` writes; a changed name makes cached conversions of the same file unused."""

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_F32 = 0
_CONTROL_TOKEN = 3

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _Reader:
    """Walks the little-endian header of a GGUF file (versions 2 and 3)."""

    def __init__(self, blob: memoryview) -> None:
        self.blob, self.at = blob, 0

    def scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self.blob, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self) -> str:
        length = self.scalar("Q")
        self.at += length
        return bytes(self.blob[self.at - length : self.at]).decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            inner, count = self.scalar("I"), self.scalar("Q")
            return [self.value(inner) for _ in range(count)]
        return self.scalar(_SCALARS[kind])

    def tensor(self) -> _Tensor:
        name, rank = self.string(), self.scalar("I")
        shape = tuple(self.scalar("Q") for _ in range(rank))[::-1]
        return _Tensor(name, shape, self.scalar("I"), self.scalar("Q"))


def convert(source: Path, target: Path) -> None:
    """Write `source` into the existing directory `target` as float32 safetensors with tokenizer and chat template.

    Reads byte-level-BPE Llama files whose tensor types the gguf package can dequantise. Numbers are split into
    single digits, as the "smollm" pre-tokenizer has it. Raises ValueError for any other kind of file.
    Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    """
    from safetensors.numpy import save_file

    blob = np.memmap(source, mode="r", dtype=np.uint8)
    reader = _Reader(blob.data)
    if bytes(blob[:4]) != b"GGUF":
        raise ValueError(f"{source} is not a GGUF file")
    reader.at = 8
    n_tensors, n_fields = reader.scalar("Q"), reader.scalar("Q")
    meta = {reader.string(): reader.value(reader.scalar("I")) for _ in range(n_fields)}
    found = (meta["general.architecture"], meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"])
    if found != ("llama", "gpt2", "smollm"):
        raise ValueError(f"{source} is of the kind {found}; only ('llama', 'gpt2', 'smollm') is read")
    tensors = [reader.tensor() for _ in range(n_tensors)]
    alignment = meta.get("general.alignment", 32)
    start = -(-reader.at // alignment) * alignment
    weights = {_name(tensor.name): _weight(tensor, blob[start + tensor.offset :], meta) for tensor in tensors}
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    config, generation = _configs(meta, tied="lm_head.weight" not in weights)
    _write_json(target / "config.json", config)
    _write_json(target / "generation_config.json", generation)
    _write_tokenizer(target, meta)


def _name(name: str) -> str:
    stem, suffix = name.rsplit(".", 1)
    if stem in _OUTER_NAMES:
        return f"{_OUTER_NAMES[stem]}.{suffix}"
    _, layer, part = stem.split(".")
    return f"model.layers.{layer}.{_LAYER_NAMES[part]}.{suffix}"


def _weight(tensor: _Tensor, data: npt.NDArray[np.uint8], meta: dict[str, Any]) -> npt.NDArray[np.float32]:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    kind = GGMLQuantizationType(tensor.kind)
    per_block, block_bytes = GGML_QUANT_SIZES[kind]
    size = math.prod(tensor.shape) // per_block * block_bytes
    if tensor.kind == _F32:
        values = np.frombuffer(data[:size].tobytes(), dtype="<f4").reshape(tensor.shape)
    else:
        values = dequantize(data[:size].reshape(tensor.shape[0], -1), kind).reshape(tensor.shape)
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(tensor.name.split(".")[-2])
    if heads is not None:
        values = _unpermute(values, meta[f"llama.attention.{heads}"])
    return np.ascontiguousarray(values, dtype=np.float32)


def _unpermute(values: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """GGUF interleaves the two halves of every rotary head; Hugging Face keeps them apart."""
    half = values.shape[0] // heads // 2
    return values.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(values.shape)


def _configs(meta: dict[str, Any], *, tied: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    heads, width = meta["llama.attention.head_count"], meta["llama.embedding_length"]
    special = {
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
    }
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": meta["llama.feed_forward_length"],
        "max_position_embeddings": meta["llama.context_length"],
        "num_attention_heads": heads,
        "num_hidden_layers": meta["llama.block_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "head_dim": width // heads,
        "rms_norm_eps": meta["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": meta["llama.rope.freq_base"],
        "tie_word_embeddings": tied,
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
        **special,
    }
    return config, {**special, "do_sample": False}


def _write_tokenizer(target: Path, meta: dict[str, Any]) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens: list[str] = meta["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = meta["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(t, normalized=False, special=True)
            for t, k in zip(tokens, kinds, strict=True)
            if k == _CONTROL_TOKEN
        ]
    )
    tokenizer.save(str(target / "tokenizer.json"))
    names = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    special = {name: tokens[meta[f"tokenizer.ggml.{key}_token_id"]] for name, key in names.items()}
    _write_json(
        target / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": meta["llama.context_length"],
            "clean_up_tokenization_spaces": False,
            **special,
        },
    )
    (target / "chat_template.jinja").write_text(meta["tokenizer.chat_template"], encoding="utf-8")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
