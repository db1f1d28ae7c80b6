"""A policy file in an experiment: read at the start, for its own judge only, and part of the run's key."""

import pytest
from policy_files import policy_file

from cluster.identity import run_key
from cluster.policy import judge_of, with_policy
from engine.config import ExperimentConfig
from engine.errors import ConfigError


def config(**changes) -> ExperimentConfig:
    base = {
        "name": "t",
        "questions": {"path": "q.jsonl"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}, "api": {"kind": "openai", "model": "m", "base_url": "http://h/v1"}},
        "loop": {"kind": "fixed_rounds"},
        "extract": {"kind": "none"},
        "truncate": {"kind": "fixed", "k": 6},
    }
    return ExperimentConfig.model_validate(base | changes)


@pytest.fixture
def path(tmp_path):
    def written(threshold=1.5, name="policy.json"):
        return policy_file(judge_of(config(observe={"full_budget": True})), tmp_path / name, threshold)

    return written


def test_the_threshold_is_read_from_the_file_and_settled_for_good(path):
    file = path()
    found = with_policy(config(policy={"file": file}))
    assert (found.policy.stop_at, found.policy.file) == (1.5, file)
    assert len(found.policy.digest) == 64
    assert with_policy(found) == found
    assert ExperimentConfig.model_validate(found.model_dump(mode="json")) == found
    assert with_policy(config()) == config()


def test_the_file_makes_the_key_and_its_place_does_not(path):
    def key(file):
        return run_key(with_policy(config(policy={"file": file})), "q", "i")

    assert key(path()) == key(path(name="copy.json"))
    assert key(path()) != key(path(threshold=2.0, name="other.json"))
    assert key(path()) != run_key(config(policy={"stop_at": 1.5}), "q", "i")


def test_a_file_that_changed_after_the_configuration_was_resolved(path):
    resolved = with_policy(config(policy={"file": path()}))
    path(threshold=2.0)
    with pytest.raises(ConfigError, match="has changed since this configuration was resolved"):
        with_policy(resolved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": {"judge": "api"}}, "its judge has model scripted, this one m"),
        ({"judge": {"field_chars": 10}}, "its judge has prompt"),
    ],
)
def test_another_judge_is_refused(path, changes, message):
    with pytest.raises(ConfigError, match=rf"policy\.json: this experiment cannot use this policy: {message}"):
        with_policy(config(policy={"file": path()}, **changes))


def test_a_policy_that_never_stops_is_not_run(path):
    with pytest.raises(ConfigError, match=r"never stops a question; run without policy\.file"):
        with_policy(config(policy={"file": path(threshold=None)}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": {"file": "p", "stop_at": 1.0}}, "set one of them"),
        ({"policy": {"file": "p"}, "observe": {"full_budget": True}}, "ends questions early"),
        ({"policy": {"file": "p"}, "judge": {"kind": "oracle"}}, "needs a judge with scores"),
    ],
)
def test_settings_that_contradict_a_policy_file(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


def test_a_judge_is_its_weights_wherever_they_lie(tmp_path):
    def local(place, weight):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "adapter_config.json").write_text("{}")
        (folder / "adapter_model.safetensors").write_bytes(weight)
        model = {"kind": "transformers", "model": "some/judge", "revision": "r", "adapter": str(folder)}
        return judge_of(config(models={"main": model}, observe={"full_budget": True}))

    assert local("a", b"1") == local("b", b"1")
    assert local("c", b"2").adapter != local("d", b"1").adapter
    recorded = {"revisions": {"model:main": "then"}, "prompts": {"judge": "b" * 64}}
    assert judge_of(config(), recorded).revision == "then"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": {"judge": "api"}}, "'t' asks no judge"),
        ({"judge": {"kind": "oracle"}, "loop": {"kind": "s2g"}}, "found judge.kind oracle"),
        (
            {
                "observe": {"full_budget": True},
                "models": {"main": {"kind": "transformers", "model": "m", "adapter": "/nowhere"}},
            },
            "adapter /nowhere is not a directory",
        ),
    ],
)
def test_an_experiment_without_a_known_judge(changes, message):
    with pytest.raises(ConfigError, match=message):
        judge_of(config(**changes))
