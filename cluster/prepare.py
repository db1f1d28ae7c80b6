"""Everything that is settled before a model is loaded: questions planned, index checked, run folder identified."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.identity import manifest, run_key
from cluster.plan import QUESTIONS_FILE, SHARDS_FILE, Plan, write_plan
from cluster.policy import with_policy
from cluster.rundir import RunDir
from engine.config import ExperimentConfig
from engine.config_file import dump_config
from engine.data import read_questions
from engine.errors import PreflightError
from engine.retrieve.index import is_built, open_index


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is ready to start or to go on: its folder, key, plan, and the shards still to do."""

    config: ExperimentConfig
    run: RunDir
    key: str
    plan: Plan
    index: dict[str, Any] | None
    folder: Path

    def missing(self) -> list[tuple[int, str]]:
        """(shard, shard id) of every planned shard without a receipt."""
        done = self.run.receipts()
        ids = [self.plan.shard_id(self.key, shard) for shard in range(len(self.plan.contents))]
        return [(shard, shard_id) for shard, shard_id in enumerate(ids) if shard_id not in done]

    def create(self) -> None:
        """Writes the run's folder, or leaves an existing one of the same key as it is."""
        store = self.run.store
        for name in (QUESTIONS_FILE, SHARDS_FILE):
            store.publish_file(name, self.folder / name)
        store.publish("config.yaml", dump_config(self.config).encode())
        about = manifest(self.config, self.key, self.plan, self.index or {})
        store.publish("manifest.json", json.dumps(about, indent=2, ensure_ascii=False).encode())


@contextmanager
def prepared(config: ExperimentConfig, dry: bool = False) -> Iterator[Prepared]:
    """Reads policy and questions, plans, checks the index against corpus and config, and names the run's folder.

    Nothing but a temporary folder is written until create(); a dry one lies outside runs_dir, and may do without an
    index that is yet to be built (index is None then, and the key is not the run's). Raises ConfigError, DataError
    and IndexMismatch.
    """
    config = with_policy(config)
    index = None if dry and not is_built(config.retriever) else open_index(config.retriever)
    local = "://" not in config.runs_dir
    try:
        if local and not dry:
            Path(config.runs_dir).mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".plan-", dir=config.runs_dir if local and not dry else None))
    except OSError as error:
        raise PreflightError(f"runs_dir {config.runs_dir} cannot be written: {error.strerror}; name another") from error
    try:
        source = config.questions
        questions = read_questions(source.path, source.format, split=source.split, limit=source.limit)
        plan = write_plan(questions, config.cluster.shard_size, folder)
        key = run_key(config, plan.digest, index.digest if index else "")
        base = config.runs_dir if not local else str(Path(config.runs_dir).resolve())
        run = RunDir(f"{base.rstrip('/')}/{config.name}-{key[:8]}")
        yield Prepared(config, run, key, plan, index.summary() if index else None, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
