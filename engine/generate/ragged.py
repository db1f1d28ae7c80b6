"""Many sequences of different lengths in one forward pass, without padding.

The new tokens of all rows lie side by side in one packed sequence, so the linear layers, where a CPU spends its
time, never see a pad token, and a row that finishes is simply left out. Only attention looks at rows one by one,
each over its own keys and values. Nothing a row yields depends on its neighbours, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Layers = dict[int, tuple[Any, Any]]
"""Keys and values of one row by layer, each a tensor [heads, capacity, width]."""

_ATTENTION = "stopgap_ragged"
_UNSUPPORTED = ("softcap", "s_aux", "position_bias")


@dataclass(slots=True)
class Row:
    """What one sequence has computed so far: `length` tokens of keys and values in buffers for `capacity`."""

    capacity: int
    length: int = 0
    layers: Layers = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Span:
    """The packed positions [start, stop) that are `row`'s new tokens."""

    row: Row
    start: int
    stop: int
    masks: dict[int | None, Any]


class RaggedModel:
    """A causal transformers model that extends rows in packed form.

    pack is the most tokens one forward pass takes: enough to use the matrix kernels well, few enough for their
    results to stay in the processor's cache. The model must compute attention through transformers' attention
    interface, with nothing but a scale and an optional sliding window; see `agrees`.
    """

    def __init__(self, model: Any, *, pack: int = 512) -> None:
        from transformers import AttentionInterface

        AttentionInterface.register(_ATTENTION, _attend)
        self.own_attention = model.config._attn_implementation
        self.model, self.pack = model, pack
        model.set_attn_implementation(_ATTENTION)

    def start(self, capacity: int) -> Row:
        return Row(capacity)

    def fork(self, row: Row, length: int, capacity: int) -> Row:
        """A new row that begins with the first `length` tokens of `row`."""
        copy = Row(capacity, length)
        for layer, (keys, values) in row.layers.items():
            copy.layers[layer] = (_grown(keys, length, capacity), _grown(values, length, capacity))
        return copy

    def size(self, row: Row) -> int:
        """Bytes held by `row`."""
        return sum(t.numel() * t.element_size() for pair in row.layers.values() for t in pair)

    def extend(self, work: Sequence[tuple[Row, Sequence[int]]]) -> Any:
        """Append tokens (at least one) to each row; [len(work), vocabulary] float32 logits after each one's last."""
        import torch

        logits: list[Any] = [None] * len(work)
        for pieces in _packs(work, self.pack):
            last = [stop - 1 for *_, stop in _spans(pieces)]
            out = self._forward(pieces, last)
            for (index, *_), row_logits in zip(pieces, out, strict=True):
                logits[index] = row_logits
        return torch.stack(logits)

    def _forward(self, pieces: list[tuple[int, Row, Sequence[int]]], last: list[int]) -> Any:
        import torch

        device = self.model.device
        spans = [_Span(row, start, stop, {}) for _, row, start, stop in _spans(pieces)]
        ids = [token for *_, tokens in pieces for token in tokens]
        positions = [row.length + i for _, row, tokens in pieces for i in range(len(tokens))]
        with torch.inference_mode():
            out = self.model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([positions], device=device),
                use_cache=False,
                logits_to_keep=torch.tensor(last, device=device),
                ragged=spans,
            )
        for span in spans:
            span.row.length += span.stop - span.start
        return out.logits[0].float()

    def agrees(self, tokens: Sequence[int], *, tolerance: float) -> bool:
        """Whether packed rows give the logits of the model's own attention, for this architecture.

        tokens: at least four ids. Compares two rows, one of them extended in two steps.
        """
        import torch

        half = len(tokens) // 2
        try:
            first, second = self.start(len(tokens)), self.start(len(tokens))
            self.extend([(first, tokens[:half])])
            got = self.extend([(first, tokens[half:]), (second, tokens[1:])])
            self.model.set_attn_implementation(self.own_attention)
            with torch.inference_mode():
                want = [self._plain(tokens), self._plain(tokens[1:])]
        except (TypeError, KeyError, RuntimeError, ValueError, AttributeError):
            return False
        finally:
            self.model.set_attn_implementation(_ATTENTION)
        wanted = torch.stack(want).float()
        return bool((got - wanted).abs().max() <= tolerance * wanted.abs().max())

    def _plain(self, tokens: Sequence[int]) -> Any:
        import torch

        return self.model(input_ids=torch.tensor([list(tokens)], device=self.model.device)).logits[0, -1]


def _packs(work: Sequence[tuple[Row, Sequence[int]]], pack: int) -> Iterator[list[tuple[int, Row, Sequence[int]]]]:
    """Cut the work into pieces (index, row, tokens) of at most `pack` tokens together; a row is in a pack once."""
    pieces: list[tuple[int, Row, Sequence[int]]] = []
    room = pack
    for index, (row, tokens) in enumerate(work):
        at = 0
        while at < len(tokens):
            piece = tokens[at : at + room]
            pieces.append((index, row, piece))
            at, room = at + len(piece), room - len(piece)
            if room == 0:
                yield pieces
                pieces, room = [], pack
    if pieces:
        yield pieces


def _spans(pieces: Sequence[tuple[int, Row, Sequence[int]]]) -> Iterator[tuple[int, Row, int, int]]:
    stop = 0
    for index, row, tokens in pieces:
        start, stop = stop, stop + len(tokens)
        yield index, row, start, stop


def _attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    ragged: Sequence[_Span] | None = None,
    **others: Any,
) -> tuple[Any, None]:
    """Attention of packed new tokens, [1, heads, tokens, width], each row over its own past and itself."""
    import torch

    if ragged is None or any(others.get(name) is not None for name in _UNSUPPORTED):
        raise TypeError(f"packed attention does not do what {type(module).__name__} asks for")
    out = query.new_empty(query.shape[2], query.shape[1], value.shape[3])
    for span in ragged:
        row, start, stop = span.row, span.start, span.stop
        past, total = row.length, row.length + stop - start
        if module.layer_idx not in row.layers:
            row.layers[module.layer_idx] = (_buffer(key, row.capacity), _buffer(value, row.capacity))
        keys, values = row.layers[module.layer_idx]
        keys[:, past:total] = key[0, :, start:stop]
        values[:, past:total] = value[0, :, start:stop]
        windowed = sliding_window is not None and total > sliding_window
        attended = torch.nn.functional.scaled_dot_product_attention(
            query[:, :, start:stop],
            keys[None, :, :total],
            values[None, :, :total],
            attn_mask=_mask(span, query, sliding_window if windowed else None) if past or windowed else None,
            is_causal=not past and not windowed,
            scale=scaling,
            enable_gqa=True,
        )
        out[start:stop] = attended[0].transpose(0, 1)
    return out[None], None


def _buffer(like: Any, capacity: int) -> Any:
    return like.new_empty(like.shape[1], capacity, like.shape[3])


def _grown(tensor: Any, length: int, capacity: int) -> Any:
    copy = tensor.new_empty(tensor.shape[0], capacity, tensor.shape[2])
    copy[:, :length] = tensor[:, :length]
    return copy


def _mask(span: _Span, like: Any, window: int | None) -> Any:
    """What each new token must not see: [new, past + new] with -inf there; None where a token sees everything."""
    import torch

    new, total = span.stop - span.start, span.row.length + span.stop - span.start
    if new == 1 and window is None:
        return None
    if window not in span.masks:
        at = torch.arange(total - new, total, device=like.device)[:, None]
        seen = torch.arange(total, device=like.device)[None, :]
        hidden = seen > at if window is None else (seen > at) | (seen <= at - window)
        span.masks[window] = torch.zeros(new, total, dtype=like.dtype, device=like.device).masked_fill(
            hidden, -torch.inf
        )
    return span.masks[window]
