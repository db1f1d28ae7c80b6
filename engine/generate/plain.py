"""One sequence at a time through a model's own attention and cache: slow, and right for every architecture."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class PlainRow:
    """One sequence's cache, and how many tokens it holds."""

    length: int = 0
    cache: Any = None


class PlainModel:
    """A causal transformers model behind the same methods as RaggedModel, for what that one cannot pack."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def start(self, capacity: int) -> PlainRow:
        return PlainRow()

    def fork(self, row: PlainRow, length: int, capacity: int) -> PlainRow:
        """A copy of `row`, or an empty row where only a part of it was asked for: not every cache can be cut."""
        if length != row.length:
            return PlainRow()
        return PlainRow(length, copy.deepcopy(row.cache))

    def size(self, row: PlainRow) -> int:
        """Bytes held by `row`, as far as its cache shows them."""
        tensors = [
            getattr(layer, name, None) for layer in getattr(row.cache, "layers", ()) for name in ("keys", "values")
        ]
        return sum(t.numel() * t.element_size() for t in tensors if t is not None)

    def extend(self, work: Sequence[tuple[PlainRow, Sequence[int]]]) -> Any:
        """Append tokens (at least one) to each row; [len(work), vocabulary] float32 logits after each one's last."""
        import torch

        logits = []
        for row, tokens in work:
            with torch.inference_mode():
                out = self.model(
                    input_ids=torch.tensor([list(tokens)], device=self.model.device),
                    past_key_values=row.cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
            row.cache, row.length = out.past_key_values, row.length + len(tokens)
            logits.append(out.logits[0, -1].float())
        return torch.stack(logits)
