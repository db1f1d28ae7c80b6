"""A random two-layer Llama with a byte-level tokenizer and a chat template, and a random LoRA adapter for it."""

from pathlib import Path

TEXTS = [
    '{"sufficient": true, "gap_items": []}',
    '{"sufficient": false, "gap_items": [{"category": "bridge_entity", "target": "", "slot": ""}]}',
    "is the question answered by the context, true or false",
]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def tokenizer():
    """A tokenizer that has " true" and " false" as single tokens, and most other words in several."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(TEXTS * 20, trainer)
    outer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="<|im_end|>", pad_token="</s>")
    outer.chat_template = TEMPLATE
    return outer


def save_model(directory: Path) -> None:
    """The model and its tokenizer, the same at every call. Heads are 32 wide, as vLLM on the CPU needs."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    words = tokenizer()
    words.save_pretrained(directory)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        initializer_range=0.2,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )
    LlamaForCausalLM(config).float().save_pretrained(directory)


def save_adapter(model_directory: Path, directory: Path, *, scale: float = 0.2, **lora) -> None:
    """A LoRA adapter with random weights of the given scale; 0 makes one without effect."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    settings = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj", "o_proj"], **lora}
    base = AutoModelForCausalLM.from_pretrained(model_directory)
    wrapped = peft.get_peft_model(base, peft.LoraConfig(task_type="CAUSAL_LM", **settings))
    torch.manual_seed(1)
    for name, weight in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=scale) if scale else torch.nn.init.zeros_(weight)
    wrapped.save_pretrained(directory)
