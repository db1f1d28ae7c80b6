"""Whether a run under a policy stopped where the replay of that policy says it stops, question by question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from engine.records import Trace
from engine.score.arrow import known
from engine.stopping.replay import Replayed
from engine.stopping.truth import LabelledStates

SHOWN = 20
"""Most questions that are listed where the two differ."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a question ended: searches made, and the scores of its answer (None where not known)."""

    searches: int
    em: float | None
    f1: float | None


def confirm(states: LabelledStates, predicted: Replayed, live: Iterable[Trace]) -> dict[str, Any]:
    """{questions, missing, stops_agree, scores_agree, differ}, ready for JSON.

    questions: those of the replay that the live run answered; missing: those that it did not ask, or failed on.
    stops_agree counts questions with as many searches as predicted, scores_agree those with the same EM and F1 too.
    differ: {question_id, predicted, live} of the first SHOWN that do not.
    """
    spent = predicted.spent.searches.tolist()
    expected = {
        name: Ended(int(spent[i]), known(predicted.em[i]), known(predicted.f1[i]))
        for i, name in enumerate(states.table.ids)
    }
    found = {
        trace.question.id: Ended(trace.n_retrievals, trace.metrics.get("em"), trace.metrics.get("f1"))
        for trace in live
        if trace.error is None and trace.question.id in expected
    }
    differ = [name for name in found if found[name] != expected[name]]
    return {
        "questions": len(found),
        "missing": len(expected) - len(found),
        "stops_agree": sum(found[name].searches == expected[name].searches for name in found),
        "scores_agree": len(found) - len(differ),
        "differ": [
            {"question_id": name, "predicted": asdict(expected[name]), "live": asdict(found[name])}
            for name in differ[:SHOWN]
        ],
    }
