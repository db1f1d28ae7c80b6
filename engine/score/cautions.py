"""What a reader of a run's figures must know before believing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.config import ExperimentConfig, HybridConfig
from engine.records import ParseStatus
from engine.score.columns import RunColumns

IDENTICAL_SHARE = 0.5
EMPTY_SHARE = 0.1
UNREADABLE_SHARE = 0.05
FEW_QUESTIONS = 4
"""Fewer questions than this are too few to call a shared ranked list a symptom."""

BLIND_TO_SCORES = ("fixed", "cost_matched")
"""Ways to cut a ranked list that read no score."""


def cautions(figures: Mapping[str, Any], columns: RunColumns, config: ExperimentConfig) -> list[str]:
    """One sentence per doubt about the figures of a run, empty where there is none."""
    return [
        *_coverage(figures),
        *_retrieval(figures),
        *config_cautions(config),
        *_judge(figures["judge"], figures["questions"]["asked"]),
        *_scores(columns),
    ]


def config_cautions(config: ExperimentConfig) -> list[str]:
    """The doubts that a configuration raises before it has run."""
    retriever, kind = config.retriever, config.truncate.kind
    if not isinstance(retriever, HybridConfig) or retriever.fusion != "rrf" or kind in BLIND_TO_SCORES:
        return []
    return [
        f"truncate.kind {kind} cuts by scores, but those of retriever.fusion rrf follow from ranks and say nothing "
        "about relevance: use fusion min_max or z_score, or truncate.kind fixed."
    ]


def _coverage(figures: Mapping[str, Any]) -> list[str]:
    found = []
    asked, errors = figures["questions"]["asked"], figures["questions"]["errors"]
    if asked == 0:
        found.append("The run has no questions.")
    planned = figures["questions"]["planned"]
    if planned is not None and planned > asked:
        found.append(f"The run is not finished: {asked} of {planned} planned questions are in.")
    if errors:
        kinds = ", ".join(f"{kind} {n}" for kind, n in figures["errors"].items())
        found.append(f"{errors} of {asked} questions ended in an error ({kinds}); the means cover only the others.")
    timed = figures["timings"]["n"]
    if timed not in (0, asked):
        found.append(f"Timings exist for {timed} of {asked} questions only.")
    return found


def _retrieval(figures: Mapping[str, Any]) -> list[str]:
    found = []
    retrieval = figures["retrieval"]
    same = retrieval["identical_first_lists"]
    if same["of"] >= FEW_QUESTIONS and same["questions"] > IDENTICAL_SHARE * same["of"]:
        found.append(
            f"{same['questions']} of {same['of']} questions got one identical first ranked list: "
            "index and queries probably went through different analysers or encoders."
        )
    searches, empty = retrieval["searches"], retrieval["empty_searches"]
    if empty and empty > EMPTY_SHARE * searches:
        found.append(f"{empty} of {searches} searches found nothing.")
    unexecuted = retrieval["unexecuted_queries"]
    if unexecuted and not searches:
        found.append(
            f"All {unexecuted} queries that the model wrote were left unexecuted: it does not write them in the form "
            "the loop reads, so nothing was ever retrieved."
        )
    elif unexecuted:
        found.append(f"{unexecuted} queries that the model wrote were not searched for (no search left, or bad form).")
    lost = retrieval["gold_lost_to_dedup"]
    if lost["questions"]:
        found.append(
            f"Dropping passages already seen removed unread gold passages in {lost['questions']} questions "
            f"({lost['hits']} hits); retrieve.dedup: passage avoids that."
        )
    return found


def _judge(judge: Mapping[str, Any], asked: int) -> list[str]:
    found = []
    verdicts = judge["verdicts"] - judge["parse_status"].get(ParseStatus.RULE.value, 0)
    unread = sum(judge["parse_status"].get(s.value, 0) for s in (ParseStatus.UNPARSED, ParseStatus.TRUNCATED))
    if unread > UNREADABLE_SHARE * verdicts:
        found.append(f"{unread} of {verdicts} verdicts of the judge could not be read and count as insufficient.")
    if verdicts >= FEW_QUESTIONS and judge["sufficient"] == 0:
        found.append(f"The judge never said sufficient in {verdicts} verdicts on {asked} questions.")
    return found


def _scores(columns: RunColumns) -> list[str]:
    found = []
    above = 0
    if "em" in columns.metrics:
        em, f1 = columns.metrics["em"], columns.metrics["f1"]
        above = int((np.nan_to_num(em) > np.nan_to_num(f1) + 1e-9).sum())
    if above:
        found.append(f"EM is above F1 for {above} questions, which cannot be: the metrics of these rows are corrupt.")
    affected = columns.sentence_gold & (columns.whole_evidence > 0)
    if affected.any():
        found.append(
            f"In {int(affected.sum())} questions evidence was kept as whole passages or summaries, about which the "
            "sentence-level scores (sp_*, joint_*) say nothing; compare those only between runs that keep sentences."
        )
    squeezed = int((np.bincount(columns.turns.owner, weights=columns.turns.memory_dropped, minlength=1) > 0).sum())
    if squeezed:
        found.append(
            f"In {squeezed} questions the evidence outgrew the prompt and the lowest-ranked spans were left out."
        )
    return found
