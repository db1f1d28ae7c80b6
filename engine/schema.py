"""One explicit Arrow schema per table.

Schemas are never inferred, so a shard without a single gap or error has the same types as any other.
"""

from __future__ import annotations

import pyarrow as pa

METRICS = (
    "em",
    "f1",
    "substring_match",
    "sp_em",
    "sp_precision",
    "sp_recall",
    "sp_f1",
    "joint_em",
    "joint_f1",
    "retrieval_recall",
    "retrieval_complete",
    "evidence_recall",
    "compression_ratio",
)
"""Per-question metrics; each is null where the question has no truth for it (see engine.score)."""

_SUPPORTING = pa.list_(pa.struct([("title", pa.string()), ("doc_id", pa.string()), ("sent_id", pa.int32())]))
_USAGE = pa.list_(
    pa.struct(
        [
            ("role", pa.string()),
            ("calls", pa.int32()),
            ("prompt_tokens", pa.int64()),
            ("completion_tokens", pa.int64()),
        ]
    )
)
_GAPS = pa.list_(
    pa.struct([("category", pa.string()), ("target", pa.string()), ("slot", pa.string()), ("description", pa.string())])
)
_VERDICT = pa.struct(
    [
        ("sufficient", pa.bool_()),
        ("gaps", _GAPS),
        ("score", pa.float64()),
        ("p_sufficient", pa.float64()),
        ("parse_status", pa.string()),
        ("raw", pa.string()),
    ]
)
_HITS = pa.list_(
    pa.struct([("doc_id", pa.string()), ("title", pa.string()), ("rank", pa.int32()), ("score", pa.float64())])
)
_EVIDENCE = pa.list_(
    pa.struct(
        [
            ("doc_id", pa.string()),
            ("title", pa.string()),
            ("sent_id", pa.int32()),
            ("text", pa.string()),
            ("rank", pa.int32()),
            ("turn", pa.int32()),
        ]
    )
)
_TURN = pa.struct(
    [
        ("index", pa.int32()),
        ("verdict", _VERDICT),
        ("query", pa.string()),
        ("query_source", pa.string()),
        ("hits", _HITS),
        ("kept", pa.int32()),
        ("evidence", _EVIDENCE),
        ("seen_dropped", pa.int32()),
        ("gold_dropped", pa.int32()),
        ("gold_retrieved", pa.int32()),
        ("memory_dropped", pa.int32()),
        ("action", pa.string()),
        ("unexecuted", pa.string()),
        ("context", pa.string()),
        ("probe_answer", pa.string()),
        ("decided", _USAGE),
        ("usage", _USAGE),
    ]
)

QUESTIONS = pa.schema(
    [
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("golden_answers", pa.list_(pa.string())),
        ("supporting", _SUPPORTING),
        ("metadata", pa.string()),
    ]
)
TRACES = pa.schema(
    [
        *QUESTIONS,
        ("answer", pa.string()),
        ("answer_raw", pa.string()),
        ("stop_reason", pa.string()),
        ("status", pa.string()),
        ("error", pa.struct([("type", pa.string()), ("message", pa.string())])),
        ("n_retrievals", pa.int32()),
        ("gold_total", pa.int32()),
        ("turns", pa.list_(_TURN)),
        ("usage", _USAGE),
        ("metrics", pa.struct([(name, pa.float64()) for name in METRICS])),
    ]
)
TIMINGS = pa.schema(
    [
        ("question_id", pa.string()),
        ("attempt", pa.string()),
        ("node", pa.string()),
        ("started_at", pa.float64()),
        ("wall_s", pa.float64()),
        (
            "roles",
            pa.list_(
                pa.struct(
                    [
                        ("role", pa.string()),
                        ("calls", pa.int32()),
                        ("seconds", pa.float64()),
                        ("model_seconds", pa.float64()),
                    ]
                )
            ),
        ),
    ]
)
"""Wall-clock figures of one question; kept beside the traces so that those stay reproducible.

roles.seconds is the time waited for replies, queueing included; roles.model_seconds the share of it spent computing.
"""
