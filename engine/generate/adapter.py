"""LoRA adapters: what must hold before the model loads, and that the loaded one changes something."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.embedded import resolve
from engine.errors import BackendError, ConfigError

_HUB_SNAPSHOT = re.compile(r"models--(?:[^/]*--)?([^/]+)/snapshots/")


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter directory and what its adapter_config.json says.

    targets: module names, or a regular expression over them. whole: modules it replaces as a whole.
    """

    path: Path
    base: str | None
    rank: int
    targets: tuple[str, ...] | str
    whole: tuple[str, ...] = ()


def read_adapter(directory: str, model: str, *, max_rank: int | None = None) -> Adapter:
    """Read and check an adapter for `model` without loading either.

    Raises ConfigError, naming both sides, for a directory that holds no LoRA adapter, an adapter trained on another
    base model (names are compared without their organisation or folder), or a rank below 1 or above max_rank.
    """
    path = Path(directory)
    file = path / "adapter_config.json"
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"adapter '{directory}' holds no adapter_config.json; name a directory saved by peft"
        ) from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file} is not JSON: {error}") from None
    if raw.get("peft_type") != "LORA":
        raise ConfigError(f"{file} describes a {raw.get('peft_type')} adapter; only LORA is supported")
    base, rank = raw.get("base_model_name_or_path"), raw.get("r")
    if base and _bare(base) not in {_bare(model), _bare(resolve(model))}:
        raise ConfigError(
            f"adapter '{directory}' was trained on '{base}', but the model is '{model}'; use its own base"
        )
    if not isinstance(rank, int) or rank < 1 or (max_rank is not None and rank > max_rank):
        allowed = "at least 1" if max_rank is None else f"from 1 to {max_rank} (max_lora_rank)"
        raise ConfigError(f"adapter '{directory}' has rank r={rank}; it must be {allowed}")
    targets = raw.get("target_modules") or ()
    return Adapter(
        path,
        base,
        rank,
        targets if isinstance(targets, str) else tuple(sorted(targets)),
        tuple(raw.get("modules_to_save") or ()),
    )


def check_targets(adapter: Adapter, modules: Iterable[str]) -> None:
    """Raise ConfigError unless every target module of the adapter is among the model's module names."""
    names = list(modules)
    targets = adapter.targets
    if isinstance(targets, str):
        if targets != "all-linear" and not any(re.fullmatch(targets, name) for name in names):
            raise ConfigError(f"adapter '{adapter.path}' targets '{targets}', which matches no module of the model")
        return
    known = {name.rsplit(".", 1)[-1] for name in names if name}
    unknown = [t for t in (*targets, *adapter.whole) if not any(n == t or n.endswith("." + t) for n in names)]
    if unknown or not targets:
        raise ConfigError(
            f"adapter '{adapter.path}' targets {unknown or 'no module'}, but the model's modules are {sorted(known)}"
        )


def load_adapter(model: Any, adapter: Adapter, probe: list[int]) -> Any:
    """The model with the adapter applied (and merged into float32 weights, so that it costs nothing).

    probe: a few token ids. Raises ConfigError where the adapter's weights do not fit the model's shapes or leave some
    of its modules without any, BackendError where the logits after the probe are the same with and without it.
    """
    import peft
    import torch

    try:
        wrapped = peft.PeftModel.from_pretrained(model, str(adapter.path), is_trainable=False)
        stored = set(peft.utils.load_peft_weights(str(adapter.path), device="cpu"))
    except (RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"adapter '{adapter.path}' does not fit the model: {reason}") from error
    differing = sorted(stored ^ set(peft.get_peft_model_state_dict(wrapped)))
    if differing:
        raise ConfigError(
            f"adapter '{adapter.path}' and the modules it names differ in {len(differing)} weights, as {differing[0]}"
        )
    ids = torch.tensor([probe], device=model.device)
    with torch.inference_mode():
        adapted = wrapped(input_ids=ids).logits.float()
        with wrapped.disable_adapter():
            plain = wrapped(input_ids=ids).logits.float()
    if not (adapted - plain).abs().max() > 0:
        raise BackendError(f"adapter '{adapter.path}' changes nothing: the logits are the same with and without it")
    return wrapped.merge_and_unload() if model.dtype == torch.float32 else wrapped.get_base_model()


def _bare(name: str) -> str:
    if snapshot := _HUB_SNAPSHOT.search(name):
        return snapshot.group(1).casefold()
    return name.removeprefix("embedded:").rstrip("/").rsplit("/", 1)[-1].casefold()
