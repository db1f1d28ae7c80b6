"""Recorded states from short patterns."""

import pyarrow as pa

from engine.stopping.state_table import state_table
from engine.stopping.states import STATES
from engine.stopping.truth import labelled

CALL = {"calls": 1, "prompt_tokens": 100, "completion_tokens": 10}


def question(name, probes, native, *, scores=(), text=None, golds=("gold",), searches=None, **columns):
    """Rows of one question: a state per character of `probes` (1 right, 0 wrong, - not asked), a search after each but
    the last. Every state costs one call of loop, judge and probe more; the native run one loop call on top.

    scores: of the first states, the others have none. columns: lists of one value per state, over the defaults.
    """
    made = []
    last = len(probes) - 1
    for k, probe in enumerate(probes):
        right = {"1": 1.0, "0": 0.0, "-": None}[probe]
        row = dict.fromkeys(STATES.names) | {
            "question_id": name,
            "question": name if text is None else text,
            "golden_answers": list(golds),
            "state": k,
            "context": "",
            "effective_score": scores[k] if k < len(scores) else None,
            "probe_answer": None if right is None else "gold" if right else f"wrong {k}",
            "probe_em": right,
            "probe_f1": None if right is None else max(right, 0.25),
            "next_action": "search" if k < last else "answer",
            "eligible": k < last,
            "native_answer": "gold" if native else "other",
            "native_em": float(native),
            "native_f1": max(float(native), 0.5),
            "native_retrievals": last if searches is None else searches,
        }
        asked = {"loop": k + 1, "judge": k + 1, "probe": k + 1, "native_loop": last + 2}
        row |= {f"{kind}_{count}": n * each for kind, n in asked.items() for count, each in CALL.items()}
        made.append(row | {name: values[k] for name, values in columns.items()})
    return made


def arrow(*questions):
    return pa.Table.from_pylist([row for rows in questions for row in rows], schema=STATES)


def table(*questions, **settings):
    return state_table(arrow(*questions), **settings)


def states(*questions, truth=None, exclude=()):
    return labelled(table(*questions), truth, exclude=exclude)


def repeated(kinds):
    """Questions of (probes, native, how many, scores) kinds, with ids of their own."""
    made = []
    for probes, native, count, *scores in kinds:
        made += [
            question(f"q{len(made) + i}", probes, native, scores=scores[0] if scores else ()) for i in range(count)
        ]
    return made


H0 = (
    ("11", 1, 11),
    ("01", 0, 3),
    ("001", 1, 27),
    ("100", 1, 4),
    ("111", 1, 22),
    ("000", 0, 29),
    ("0000", 1, 6),
    ("0000", 0, 65),
    ("00110", 1, 1),
    ("01100", 1, 1),
    ("01111", 1, 21),
    ("01001", 0, 3),
    ("01011", 0, 7),
)
"""200 questions with every count that METHODS B3 publishes of the exploratory audit."""

STOP, GO = 9.0, 0.0
PRIMARY = (
    ("110", 1, 34, (GO, STOP)),
    ("110", 0, 1, (GO, STOP)),
    ("010", 1, 7, (GO, STOP)),
    ("000", 1, 6, (GO, STOP)),
    ("000", 0, 13, (GO, STOP)),
    ("000", 0, 8, (STOP, GO)),
    ("0110", 1, 194, (GO, GO, GO)),
    ("0010", 1, 58, (GO, GO, GO)),
    ("0000", 1, 60, (GO, GO, GO)),
    ("0000", 0, 169, (GO, GO, GO)),
    ("000", 0, 250, (GO, GO)),
)
"""800 questions with the counts that METHODS B8 publishes of the primary run and of its policy (threshold 9)."""
