"""What a run needs of the machine it is on: Java, memory, shared memory and disk."""

from __future__ import annotations

import os
from collections.abc import Mapping

from engine.errors import PreflightError
from engine.finding import Finding, fail, ok, warn
from engine.retrieve.jvm import anserini_version, java_version
from engine.room import SHARED_MEMORY, disk_free, existing, size

MIN_FREE_BYTES = 1 << 30
"""Less free disk than this is a warning whatever a run's traces take."""


def check_java(needed: bool) -> Finding:
    """The Java that Lucene would use, found without starting it; a fault is only a warning where no part needs it."""
    try:
        java, lucene = java_version(), anserini_version()
    except PreflightError as error:
        return fail("java", str(error)) if needed else warn("java", str(error), "only retrievers of kind bm25 need it")
    return ok("java", f"{java.version} from {java.source} ({java.home}), Anserini {lucene}")


def check_memory(needed: Mapping[str, int], available: int, total: int) -> Finding:
    """Estimated bytes by part against the memory there: above total fails, above what is free now warns."""
    there = f"{size(available)} of {size(total)} free"
    if not needed:
        return ok("memory", there)
    wanted = sum(needed.values())
    parts = ", ".join(f"{name} {size(count)}" for name, count in needed.items())
    found = f"{there}, the run takes about {size(wanted)} ({parts})"
    if wanted > total:
        return fail("memory", found, "lower replicas, choose smaller models, or use a larger machine")
    if wanted > available:
        return warn("memory", found, "end other programs first, or lower replicas")
    return ok("memory", found)


def check_shared_memory(free: int | None, wanted: int) -> Finding:
    """Free bytes in /dev/shm (None: there is none) against the object store of a local Ray."""
    if free is None:
        return ok("shared memory", f"no {SHARED_MEMORY} on this system; Ray keeps objects elsewhere")
    found = f"{size(free)} free in {SHARED_MEMORY}, Ray's object store wants {size(wanted)}"
    if free < wanted:
        return warn("shared memory", found, "Ray falls back to the disk; in a container use --shm-size=1g")
    return ok("shared memory", found)


def check_disk(folder: str, per_question: int, questions: int | None) -> Finding:
    """Free bytes where the runs go against the estimate of their traces.

    per_question: 0 where nothing is to be run. questions: None where their number is not known.
    """
    if "://" in folder:
        return ok("disk", f"runs go to {folder}, which is not looked at")
    place = existing(folder)
    if not place.is_dir() or not os.access(place, os.W_OK):
        return fail("disk", f"runs_dir {folder}: {place} is not a folder that can be written", "name another")
    free, needed = disk_free(folder), per_question * (questions or 1)
    found = f"{size(free)} free in {place}"
    if per_question and questions:
        found += f", {questions} questions leave at most {size(needed)} of traces"
    elif per_question:
        found += f", a question leaves at most {size(needed)} of traces"
    if free < needed:
        return fail("disk", found, "free some, or set runs_dir to another disk")
    if free < MIN_FREE_BYTES:
        return warn("disk", found, "free some: Ray's logs and spilled objects need room too")
    return ok("disk", found)
