"""Embedding a corpus on Ray: shards of it are rows of a data set, and each embedding actor makes those it is given."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import ray.data
from ray.exceptions import RayError

from cluster.session import node_resources, ray_session
from engine.config import EncoderConfig, RetrieverConfig
from engine.errors import PreflightError, RunError
from engine.retrieve.embedding_shards import Embed, Shards, open_encoder
from engine.retrieve.index import Index, Progress, build_index


def build_on_ray(config: RetrieverConfig, progress: Progress | None = None, address: str | None = None) -> Index:
    """The configured index, built as by engine.retrieve.index.build_index, with its embeddings made on Ray."""
    with embedding_on_ray(address) as embed:
        return build_index(config, progress, embed)


@contextmanager
def embedding_on_ray(address: str | None = None) -> Iterator[Embed]:
    """An Embed (see engine.retrieve.embedding_shards) over as many actors as the encoder has replicas.

    Ray is connected to, or started, when there is something to embed, and left at the end of the block. A killed
    actor's shards are made by another one. The folder of the shards must be one that every node sees. The Embed
    raises PreflightError where the actors cannot be placed, RunError with the first cause where embedding breaks off;
    finished shards stay, and the next build goes on from there.
    """
    with ExitStack() as session:

        def embed(shards: Shards, missing: Sequence[int]) -> Iterator[int]:
            session.enter_context(ray_session(address))
            check_room(shards.encoder, node_resources())
            try:
                for row in _dataset(shards, missing).iter_rows():
                    if row["failure"]:
                        raise _broken(f"at shard {row['shard']}: {row['failure']}")
                    yield int(row["shard"])
            except RayError as error:
                raise _broken(str(error).strip().splitlines()[-1]) from error

        yield embed


def _broken(cause: str) -> RunError:
    return RunError(f"embedding broke off: {cause}; finished shards are kept, start the same command again to go on")


def check_room(encoder: EncoderConfig, nodes: Sequence[Mapping[str, float]]) -> None:
    """Raises PreflightError where the embedding actors cannot all be placed. nodes: resources of each live node."""
    for resource, each in (("CPU", encoder.num_cpus), ("GPU", encoder.num_gpus)):
        if each == 0:
            continue
        places = sum(int(node.get(resource, 0.0) / each + 1e-9) for node in nodes)
        if places < encoder.replicas:
            found = ", ".join(f"{node.get(resource, 0.0):g}" for node in nodes)
            raise PreflightError(
                f"embedding needs {encoder.replicas} actors of {each:g} {resource}s each, but the nodes have {found}: "
                f"lower encoder.replicas or encoder.num_{resource.lower()}s, or use a larger cluster"
            )


class EmbeddingActor:
    """Makes shards given as rows {shard}; returns {shard, failure} and never raises.

    failure is empty, or says why the encoder could not be opened or the shard not be made.
    """

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        try:
            self._encoder, self._failure = open_encoder(shards.encoder), ""
        except Exception as error:
            self._failure = f"{type(error).__name__}: {error}"

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        failures = [self._failure or self._make(int(number)) for number in batch["shard"]]
        return {"shard": batch["shard"], "failure": np.array(failures, dtype=object)}

    def _make(self, number: int) -> str:
        try:
            self._shards.make(number, self._encoder)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""


def _dataset(shards: Shards, missing: Sequence[int]) -> ray.data.Dataset:
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"shard": number} for number in missing]
    actors = min(shards.encoder.replicas, len(missing))
    # Enough blocks for all actors to end together; no more for a larger corpus, as the driver keeps a record of each.
    return ray.data.from_items(rows, override_num_blocks=min(len(rows), 64 * actors)).map_batches(
        EmbeddingActor,
        fn_constructor_args=(shards,),
        batch_size=1,
        batch_format="numpy",
        num_cpus=shards.encoder.num_cpus,
        num_gpus=shards.encoder.num_gpus,
        compute=ray.data.ActorPoolStrategy(size=actors),
    )
