"""The policy file of an experiment: read before anything starts, and only for the judge it was made for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster.identity import prompt_digests, revisions
from engine.config import ExperimentConfig
from engine.embedded import revision as revision_of
from engine.errors import ConfigError
from engine.stopping.policy_file import Judge, read_policy


def with_policy(config: ExperimentConfig) -> ExperimentConfig:
    """The configuration with the threshold and digest of its policy file; without one, as it is.

    Raises ConfigError for a file that cannot be read, has changed since the configuration was resolved, never stops,
    or was made for another judge.
    """
    if config.policy.file is None:
        return config
    path = config.policy.file
    policy, digest = read_policy(path)
    if config.policy.digest not in (None, digest):
        raise ConfigError(f"policy.file {path} has changed since this configuration was resolved; drop policy.digest")
    if policy.threshold is None:
        raise ConfigError(f"policy.file {path} never stops a question; run without policy.file instead")
    settled = config.policy.model_copy(update={"stop_at": policy.threshold, "digest": digest})
    resolved = config.model_copy(update={"policy": settled})
    policy.require_judge(judge_of(resolved), f"policy.file {path}: this experiment")
    return resolved


def judge_of(config: ExperimentConfig, recorded: Mapping[str, Any] | None = None) -> Judge:
    """The judge of an experiment; recorded: the manifest of its run, which knows what was there when it ran.

    Raises ConfigError for a judge without scores.
    """
    if config.judge.kind == "oracle":
        raise ConfigError("a policy needs a judge with scores, found judge.kind oracle")
    model = config.models[config.roles.judge]
    told = recorded or {"revisions": revisions(config), "prompts": prompt_digests(config)}
    revision = told["revisions"].get(f"model:{config.roles.judge}")
    if revision is None:
        raise ConfigError(f"'{config.name}' asks no judge, so that it has no scores; set observe.full_budget=true")
    return Judge(
        model=getattr(model, "model", model.kind),
        revision=revision,
        adapter=_adapter(getattr(model, "adapter", None)),
        prompt=told["prompts"]["judge"],
    )


def _adapter(path: str | None) -> str | None:
    """What identifies an adapter's weights, wherever its directory lies."""
    if path is None:
        return None
    if not Path(path).is_dir():
        raise ConfigError(f"the judge's adapter {path} is not a directory; its content identifies the judge")
    return revision_of(path)
