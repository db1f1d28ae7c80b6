"""Where the time of a run went: per question and per role."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def timing_figures(timings: pa.Table | None) -> dict[str, Any]:
    """Figures of a table of engine.schema.TIMINGS; n 0 and None throughout for an empty or missing one.

    wall_s: per question, median, p95 (nearest rank), max, and slowest, the ids of the five slowest. span_s: from the
    first question's start to the last one's end, idle time of a resumed run included. roles: calls, seconds waited
    for replies (queueing included) and model_seconds computed, summed over questions, so they may exceed the span.
    """
    if timings is None or timings.num_rows == 0:
        return {"n": 0, "wall_s": None, "span_s": None, "roles": {}, "nodes": 0}
    table = timings.combine_chunks()
    wall = table.column("wall_s").to_numpy()
    started = table.column("started_at").to_numpy()
    middle, high = np.percentile(wall, [50, 95], method="inverted_cdf")
    slowest = np.argsort(-wall, kind="stable")[:5]
    return {
        "n": int(wall.size),
        "wall_s": {
            "median": float(middle),
            "p95": float(high),
            "max": float(wall.max()),
            "slowest": table.column("question_id").take(pa.array(slowest)).to_pylist(),
        },
        "span_s": float((started + wall).max() - started.min()),
        "roles": _roles(table.column("roles")),
        "nodes": len(pc.unique(table.column("node"))),
    }


def _roles(column: Any) -> dict[str, dict[str, float]]:
    entries = pa.Table.from_struct_array(pc.list_flatten(column))
    sums = entries.group_by("role").aggregate([(name, "sum") for name in ("calls", "seconds", "model_seconds")])
    return {
        row["role"]: {
            "calls": row["calls_sum"],
            "seconds": row["seconds_sum"],
            "model_seconds": row["model_seconds_sum"],
        }
        for row in sums.sort_by("role").to_pylist()
    }
