"""Replies held to a JSON schema, token by token, by xgrammar."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import BackendError

_COMPILED = 64


class Grammars:
    """Compiles the schemas of one tokenizer; the last few distinct ones are kept.

    JSON is written on one line with ", " and ": " as separators and no other free white space, so that the value
    after a key is the continuation " true" or " false" of a prefix that ends in a colon.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, stop_ids: frozenset[int]) -> None:
        import xgrammar

        self.tokenizer, self.vocabulary, self.stop_ids = tokenizer, vocabulary, stop_ids
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=vocabulary, stop_token_ids=sorted(stop_ids)
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.printable = _printable(info, vocabulary)
        self._compiled: OrderedDict[str, Any] = OrderedDict()

    def start(self, schema: Mapping[str, Any], prefix: str) -> GrammarState:
        """The state of a reply that begins with `prefix`. BackendError for a schema or prefix that does not fit."""
        import xgrammar

        state = GrammarState(self, xgrammar.GrammarMatcher(self._compile(schema)))
        if prefix and not state.matcher.accept_string(prefix):
            raise BackendError(f"the reply's prefix {prefix!r} does not fit the JSON schema it is held to")
        return state

    def _compile(self, schema: Mapping[str, Any]) -> Any:
        # Not sorted: the order of properties is the order in which they must be written.
        key = json.dumps(schema)
        if key not in self._compiled:
            try:
                self._compiled[key] = self._compiler.compile_json_schema(key, any_whitespace=False)
            except (RuntimeError, ValueError) as error:
                raise BackendError(f"JSON schema cannot be made a grammar: {str(error).splitlines()[0]}") from error
            if len(self._compiled) > _COMPILED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return self._compiled[key]


class GrammarState:
    """What may follow in one reply."""

    def __init__(self, grammars: Grammars, matcher: Any) -> None:
        import xgrammar

        self.grammars, self.matcher = grammars, matcher
        self._bits = xgrammar.allocate_token_bitmask(1, grammars.vocabulary)

    def mask(self, logits: Any) -> None:
        """Set the logits [vocabulary] of tokens that may not follow to -inf, in place."""
        import xgrammar

        self._fill()
        xgrammar.apply_token_bitmask_inplace(logits[None], self._bits.to(logits.device))

    def advance(self, tokens: Sequence[int]) -> None:
        """Go on by tokens that may follow; BackendError at one that may not."""
        for token in tokens:
            if not self.matcher.accept_token(token):
                raise BackendError(f"token {token} may not follow here by the reply's JSON schema")

    def done(self) -> bool:
        """Whether the reply is whole and nothing but its end may follow."""
        if not self.matcher.is_completed():
            return False
        self._fill()
        allowed: int = sum(word.bit_count() for word in self._bits.numpy().view("uint32").ravel().tolist())
        return allowed <= len(self.grammars.stop_ids)

    def _fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self._bits)
        self._bits &= self.grammars.printable

    def forced(self, most: int) -> list[int]:
        """Advance over the text that alone may follow, by up to `most` tokens, and return them.

        The last token of that text is left to the model, which may join it to what comes next.
        """
        text = self.matcher.find_jump_forward_string() if most > 0 else ""
        tokens = self.grammars.tokenizer.encode(text, add_special_tokens=False)[:-1] if text else []
        taken: list[int] = []
        for token in tokens[:most]:
            if not self.matcher.accept_token(token):
                break
            taken.append(token)
        return taken


def _printable(info: Any, vocabulary: int) -> Any:
    """The bit mask of tokens without control characters: JSON forbids them in strings, xgrammar's strings of
    limited length do not, and JSON on one line has no use for them elsewhere.
    """
    import torch
    import xgrammar

    bits = xgrammar.allocate_token_bitmask(1, vocabulary)
    bad = [i for i, text in enumerate(info.decoded_vocab) if any(byte < 0x20 or byte == 0x7F for byte in text)]
    flags = torch.ones(bits.shape[1] * 32, dtype=torch.int64)
    flags[bad] = 0
    words = (flags.view(-1, 32) << torch.arange(32)).sum(-1)
    return words.to(torch.int32)[None]
