"""A run's configuration in a few words, and where several configurations differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.config import ExperimentConfig, ExtractConfig, HybridConfig, LoopConfig, RetrieverConfig
from engine.truncate import TruncateConfig


def describe(config: ExperimentConfig) -> list[tuple[str, str]]:
    """(part, what it is) for the parts that a reader needs to place a result; every key is in the saved config."""
    retrieve = config.retrieve
    parts = [
        ("loop", _loop(config.loop)),
        ("retriever", _retriever(config.retriever)),
        ("list", f"{retrieve.pool} of {retrieve.depth} hits, seen ones dropped by {retrieve.dedup}"),
        ("cut", _cut(config.truncate)),
    ]
    if config.loop.kind == "retrieve_only":
        return parts
    if config.observe.full_budget:
        parts.append(("budget", "full: no early stop, every state recorded"))
    if config.loop.kind == "s2g" or config.policy.stop_at is not None or config.observe.full_budget:
        parts.append(("judge", _judge(config)))
    if config.loop.kind not in ("search_r1", "ircot"):
        parts.append(("evidence", _evidence(config.extract)))
        if config.extract.kind in ("pointer", "summary"):
            parts.append(("extractor", _model(config, "extractor")))
    return [*parts, ("reasoner", _model(config, "reasoner")), ("seed", str(config.seed))]


def differing(configs: Sequence[ExperimentConfig]) -> list[tuple[str, list[str]]]:
    """(dotted key, value per run) for every result-relevant key on which the configurations differ."""
    flat = [flatten(config.identity()) for config in configs]
    keys = sorted({key for tree in flat for key in tree})
    rows = [(key, [tree.get(key, "–") for tree in flat]) for key in keys]
    return [(key, values) for key, values in rows if len(set(values)) > 1]


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """A tree of plain values as dotted keys and short texts; lists of plain values become one text."""
    flat: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.") if value else {f"{prefix}{key}": "{}"}
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            flat |= flatten({str(i): item for i, item in enumerate(value)}, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            flat[f"{prefix}{key}"] = ", ".join(map(str, value))
        else:
            flat[f"{prefix}{key}"] = "none" if value is None else str(value)
    return flat


def _retriever(retriever: RetrieverConfig) -> str:
    if isinstance(retriever, HybridConfig):
        parts = " and ".join(f"{name} ({_retriever(part)})" for name, part in retriever.parts.items())
        return f"{parts}, fused by {retriever.fusion}"
    return f"BM25, k1 {retriever.k1:g}, b {retriever.b:g}" if retriever.kind == "bm25" else retriever.kind


def _loop(loop: LoopConfig) -> str:
    if loop.kind == "retrieve_only":
        return "retrieval only, no answer"
    if loop.kind == "single":
        return "single-shot, one retrieval"
    if loop.kind == "fixed_rounds":
        return f"fixed rounds, {loop.rounds} retrievals, no judge"
    if loop.kind == "search_r1":
        return f"Search-R1, at most {loop.max_turns} turns, top {loop.topk}"
    if loop.kind == "ircot":
        return f"IRCoT, at most {loop.max_turns} retrievals, top {loop.topk}"
    query = "the gap alone" if loop.query_mode == "gap_only" else "question and gap"
    return f"S2G, at most {loop.max_turns} retrievals, query from {query} (up to {loop.max_gaps})"


def _judge(config: ExperimentConfig) -> str:
    if config.judge.kind == "oracle":
        return "oracle, reads the gold evidence"
    stop_at = config.judge.threshold if config.policy.stop_at is None else config.policy.stop_at
    return _model(config, "judge") + ("" if stop_at is None else f", stops at score ≥ {stop_at:g}")


def _cut(truncate: TruncateConfig) -> str:
    settings = truncate.model_dump(exclude={"kind"}, exclude_none=True)
    return ", ".join([truncate.kind, *(f"{key.replace('_', ' ')} {value}" for key, value in settings.items())])


def _evidence(extract: ExtractConfig) -> str:
    if extract.kind == "none":
        return "whole passages"
    if extract.kind == "summary":
        return "summary by the extractor"
    how = (
        "pointed at by the extractor"
        if extract.kind == "pointer"
        else f"similar (≥ {extract.min_similarity:g}) to question or gap"
    )
    return f"up to {extract.max_sentences} sentences per turn, {how}"


def _model(config: ExperimentConfig, role: str) -> str:
    model = config.models[getattr(config.roles, role)]
    name = getattr(model, "model", None)
    adapter = getattr(model, "adapter", None)
    return (f"{name} by {model.kind}" if name else model.kind) + (f", adapter {adapter}" if adapter else "")
