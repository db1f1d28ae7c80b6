"""A two-layer Llama with random weights and a byte-level tokenizer, LoRA adapters, and slow, plain references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEXT = [
    "the capital of France is Paris and the river is the Seine",
    '{"sufficient": true, "gap_items": []} {"sufficient": false, "gap_items": [{"category": "attribute"}]}',
    "who directed the film that was shot in the city where the author was born?",
    "user assistant system question context answer evidence passage sentence 0123456789",
]
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer(template: str | None = TEMPLATE) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=template
    )


def build_model(directory: Path, *, template: str | None = TEMPLATE, seed: int = 0, **overrides: Any) -> Path:
    """Save model and tokenizer; weights are large enough that no two logits nearly tie."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = build_tokenizer(template)
    torch.manual_seed(seed)
    settings = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "initializer_range": 0.4,
        "eos_token_id": [tokenizer.eos_token_id, 0],
        "pad_token_id": 0,
    }
    LlamaForCausalLM(LlamaConfig(**(settings | overrides))).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def make_adapter(base: Path, directory: Path, *, scale: float = 1.0, **settings: Any) -> Path:
    """Save a LoRA adapter whose B matrices are random, times scale."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(3)
    chosen = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj", "down_proj"]} | settings
    model = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), peft.LoraConfig(**chosen))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.5).data.mul_(scale)
    model.save_pretrained(directory)
    return directory


class Reference:
    """The model of a directory run without cache, batch or packing: one full forward per token."""

    def __init__(self, directory: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(directory)

    def prompt(self, messages: Any, prefix: str = "") -> list[int]:
        text = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        return self.tokenizer.encode(text + prefix, add_special_tokens=False)

    def logits(self, tokens: list[int]) -> Any:
        """[len(tokens), vocabulary]"""
        import torch

        with torch.no_grad():
            return self.model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]

    def greedy(self, prompt: list[int], most: int, ends: tuple[int, ...] = (0, 2)) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < most and (not tokens or tokens[-1] not in ends):
            tokens.append(int(self.logits(prompt + tokens)[-1].argmax()))
        return tokens

    def log_probability(self, prompt: list[int], continuation: list[int]) -> float:
        scores = self.logits(prompt + continuation).log_softmax(-1)
        return sum(float(scores[len(prompt) - 1 + i, token]) for i, token in enumerate(continuation))
