"""A sentence-transformers model with its own pooling and maximum length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.config import SentenceTransformersConfig
from engine.embedded import resolve
from engine.errors import ConfigError
from engine.torch_threads import set_threads


class SentenceTransformersEncoder:
    """An Encoder (see engine.encode): the prefix of `kind`, the model, then unit length.

    Texts are cut at the model's maximum length, or at config.max_length tokens. batch_size texts are encoded
    together, longest first. Raises ConfigError for a model or device that cannot be used.
    """

    def __init__(self, config: SentenceTransformersConfig) -> None:
        set_threads(config.threads)
        import transformers

        transformers.utils.logging.disable_progress_bar()
        self._prefixes = {"query": config.query_prefix, "passage": config.passage_prefix}
        self._batch_size = config.batch_size
        self._model = _load(config)
        if config.max_length is not None:
            self._model.max_seq_length = config.max_length
        self.dim: int = self._model.get_embedding_dimension()

    def encode(self, texts: Sequence[str], *, kind: str = "passage") -> npt.NDArray[np.float32]:
        """[len(texts), dim] float32 unit rows; kind is "query" or "passage", any other a ValueError."""
        if kind not in self._prefixes:
            raise ValueError(f"kind must be 'query' or 'passage', not '{kind}'")
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        vectors = self._model.encode(
            [self._prefixes[kind] + text for text in texts],
            batch_size=self._batch_size,
            prompt="",
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)


def _load(config: SentenceTransformersConfig) -> Any:
    import torch
    from sentence_transformers import SentenceTransformer

    device = None if config.device == "auto" else config.device
    if device is not None and device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device '{device}' was asked for, but torch sees no GPU here; set device: cpu or auto")
    try:
        return SentenceTransformer(resolve(config.model), revision=config.revision, device=device)
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"encoder '{config.model}' cannot be loaded: {reason}") from error
