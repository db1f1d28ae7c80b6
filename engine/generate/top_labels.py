"""Label log-probs from the per-token alternatives that a chat endpoint returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def label_logprobs(tokens: Sequence[Any] | None, prefix: str, labels: tuple[str, str]) -> tuple[float, float] | None:
    """Log-probs of the two labels at their place in the reply, or None; never a guess.

    tokens: the reply's tokens, each with `token` and `top_logprobs` (a list with `token` and `logprob`). The place
    is the first token before which the reply equals the prefix up to whitespace, and which begins a label. There
    the probability of a label is the sum over the listed tokens that begin it, differently spaced ones included.
    None where the endpoint gave no log-probs, the reply has no such place, or a label is not among those listed.
    An endpoint that decodes under a grammar may list its log-probs after masking.
    """
    wanted = _squeeze(prefix)
    so_far = ""
    for token in tokens or ():
        if so_far == wanted and any(_begins(token.token, label) for label in labels):
            sums = [_sum(token.top_logprobs or (), label) for label in labels]
            return (sums[0], sums[1]) if sums[0] is not None and sums[1] is not None else None
        so_far += _squeeze(token.token)
        if not wanted.startswith(so_far):
            return None
    return None


def _sum(listed: Sequence[Any], label: str) -> float | None:
    found = [entry.logprob for entry in listed if _begins(entry.token, label)]
    top = max(found, default=-math.inf)
    return top + math.log(sum(math.exp(logprob - top) for logprob in found)) if top > -math.inf else None


def _begins(token: str, label: str) -> bool:
    """Whether the token starts the label, or is the label and more that is no word: `true,` for `true`."""
    start, whole = token.strip(), label.strip()
    if not start:
        return False
    if start.startswith(whole):
        return not start[len(whole) :][:1].isalnum()
    return whole.startswith(start)


def _squeeze(text: str) -> str:
    return "".join(text.split())
