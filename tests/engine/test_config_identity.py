"""What of a configuration is in the run key: everything that changes results, and nothing else."""

import json

import pytest
from pydantic import ValidationError

from engine.config import ExperimentConfig

POOL = {"replicas": 2, "num_cpus": 1.5, "num_gpus": 0.5, "timeout_s": 30.0}
SEARCHED = {"shards": 3, "shard": 2, "cache_queries": 5, "batch_window_s": 0.5}
BASE = {
    "name": "base",
    "questions": {"path": "q.jsonl"},
    "retriever": {"kind": "bm25", "corpus": {"path": "c.jsonl"}, "index": "i", "shards": 3},
    "models": {
        "main": {"kind": "transformers", "model": "m"},
        "gpu": {"kind": "vllm", "model": "m"},
        "api": {"kind": "openai", "model": "m", "base_url": "http://h/v1"},
        "fake": {"kind": "scripted"},
    },
    "encoders": {"main": {"kind": "sentence_transformers", "model": "e"}, "fake": {"kind": "hashing"}},
    "truncate": {"kind": "gapr"},
    "cost": {"models": {"main": {"prompt_per_million": 1.0}}},
}
VARIANTS = {
    "s2g, pointer": {},
    "fixed rounds, embedding": {
        "loop": {"kind": "fixed_rounds"},
        "extract": {"kind": "embedding"},
        "truncate": {"kind": "fixed"},
    },
    "summary, synthetic": {"extract": {"kind": "summary"}, "retriever": {"kind": "synthetic", "shards": 3}},
}
NOT_IN_THE_KEY = (
    "name",
    "runs_dir",
    "cost.",
    "policy.file",
    "observe.margin",
    "cluster.runners",
    "cluster.runner_cpus",
    "cluster.questions_in_flight",
    "cluster.call_retries",
    "cluster.init_timeout_s",
    "cluster.watchdog_s",
)
NOT_IN_THE_KEY_OF_A_POOL = {
    *POOL,
    *SEARCHED,
    "request_timeout_s",
    "requests_per_minute",
    "max_retries",
    "api_key_env",
    "heap",
    "slots",
    "max_batch",
    "batch_size",
    "threads",
    "prefix_cache_mb",
}
OTHERS = [
    "other",
    "2g",
    "title",
    "float16",
    "cuda",
    "oracle",
    "top_sentence",
    "question_plus_gap",
    "ray",
    "gpu",
    "fake",
    1,
    2,
    0.5,
    True,
    False,
]
"""Values of which at least one is valid, and new, for every setting that is not a section."""


def config(tree) -> ExperimentConfig:
    return ExperimentConfig.model_validate(tree)


def key_of(tree) -> str:
    return json.dumps(config(tree).identity(), sort_keys=True)


def leaves(tree, path=()):
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        elif not isinstance(value, dict):
            yield (*path, key)


def changed(tree, path, value):
    first, *rest = path
    return {**tree, first: changed(tree[first], rest, value) if rest else value}


def at(tree, path):
    for part in path:
        tree = tree[part]
    return tree


def another(tree, path):
    """The tree with another valid value at the path."""
    for value in OTHERS:
        candidate = changed(tree, path, value)
        try:
            found = config(candidate).model_dump(mode="json")
        except ValidationError:
            continue
        if at(found, path) != at(tree, path):
            return found
    raise LookupError(f"no other value is known for {path}")


def in_the_key(path) -> bool:
    name = ".".join(path)
    pool = path[-1] if path[0] in ("retriever", "models", "encoders") else ""
    return not name.startswith(NOT_IN_THE_KEY) and pool not in NOT_IN_THE_KEY_OF_A_POOL


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_setting_is_in_the_key_or_named_as_one_that_is_not(variant):
    tree = config(BASE | VARIANTS[variant]).model_dump(mode="json")
    key = key_of(tree)
    paths = [path for path in leaves(tree) if path[-1] != "kind"]
    assert len(paths) > 90
    wrong = [".".join(path) for path in paths if (key_of(another(tree, path)) != key) != in_the_key(path)]
    assert wrong == []


@pytest.mark.parametrize(
    "change",
    [
        {"loop": {"kind": "single"}},
        {"loop": {"kind": "fixed_rounds"}},
        {"extract": {"kind": "none"}},
        {"extract": {"kind": "embedding"}},
        {"truncate": {"kind": "fixed"}},
        {"retriever": {"kind": "synthetic"}},
        {"loop": {"kind": "retrieve_only"}},
        {"judge": {"kind": "oracle"}},
        {"models": BASE["models"] | {"main": {"kind": "scripted"}}},
        {"models": BASE["models"] | {"more": {"kind": "scripted"}}},
    ],
)
def test_another_kind_of_part_is_another_run(change):
    assert key_of(BASE | change) != key_of(BASE)


def hybrid(**changes):
    parts = {"a": {"kind": "synthetic"}, "b": {"kind": "synthetic", "n_docs": 5}}
    return key_of(BASE | {"retriever": {"kind": "hybrid", "parts": parts} | changes})


@pytest.mark.parametrize(
    "change",
    [
        {"fusion": "rrf"},
        {"weights": {"a": 2.0}},
        {"depth": 77},
        {"rrf_k": 10},
        {"parts": {"a": {"kind": "synthetic"}, "b": {"kind": "synthetic"}}},
        {"parts": {"a": {"kind": "synthetic"}, "c": {"kind": "synthetic", "n_docs": 5}}},
    ],
)
def test_what_a_hybrid_is_made_of_and_how_is_in_the_key(change):
    assert hybrid(**change) != hybrid()


def test_where_and_how_wide_a_hybrids_parts_run_is_not():
    wide = {"a": {"kind": "synthetic"} | POOL | SEARCHED, "b": {"kind": "synthetic", "n_docs": 5} | SEARCHED}
    assert hybrid(parts=wide) == hybrid()
    assert hybrid(parts=dict(reversed(wide.items()))) == hybrid()


@pytest.mark.parametrize("pool", ["retriever", "models", "encoders"])
def test_how_wide_and_patient_a_pool_runs_is_no_other_run(pool):
    wide = BASE[pool] | POOL if pool == "retriever" else {name: part | POOL for name, part in BASE[pool].items()}
    assert wide != BASE[pool]
    assert key_of(BASE | {pool: wide}) == key_of(BASE)


def test_a_default_written_out_is_the_same_run():
    assert key_of(config(BASE).model_dump(mode="json")) == key_of(BASE)


def test_the_order_of_keys_is_no_other_run():
    assert key_of(dict(reversed(BASE.items()))) == key_of(BASE)


def test_identity_leaves_the_configuration_alone():
    one = config(BASE)
    before = one.model_dump()
    one.identity()["retriever"]["k1"] = 99
    assert one.model_dump() == before
