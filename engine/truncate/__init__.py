"""Ranked-list truncation: how many leading hits of each list to keep.

Every method is a pure function of padded scores [batch, L] and lengths [batch] to kept counts [batch], total on any
lists, which all methods read by one rule (`ranked`). Adding a method is adding a file, a line to METHODS and its
parameters to TruncateConfig. The oracles, which need the gold hits too, stand apart in ORACLES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, get_args

import numpy as np
from pydantic import Field

from engine.truncate.adaptive_k import AdaptiveK, adaptive_k
from engine.truncate.autocut import Autocut, autocut
from engine.truncate.cost_matched import CostMatched, cost_matched, matched_k
from engine.truncate.expected_f1 import ExpectedF1, expected_f1
from engine.truncate.fixed import FixedK, fixed
from engine.truncate.gapr import GapR, cut_one, gapr
from engine.truncate.kneedle import Kneedle, kneedle
from engine.truncate.oracle import oracle_f1, oracle_last_gold
from engine.truncate.ranked import Counts, Scores
from engine.truncate.ratio_threshold import RatioThreshold, ratio_threshold
from engine.truncate.score_threshold import ScoreThreshold, score_threshold
from engine.truncate.settings import Settings
from engine.truncate.surprise import Surprise, surprise
from engine.truncate.taa_k import TaaK, taa_k
from engine.truncate.top_p import TopP, top_p

__all__ = [
    "CONFIGS",
    "METHODS",
    "ORACLES",
    "AdaptiveK",
    "Autocut",
    "CostMatched",
    "Counts",
    "ExpectedF1",
    "FixedK",
    "GapR",
    "Kneedle",
    "RatioThreshold",
    "ScoreThreshold",
    "Scores",
    "Settings",
    "Surprise",
    "TaaK",
    "TopP",
    "TruncateConfig",
    "adaptive_k",
    "autocut",
    "cost_matched",
    "expected_f1",
    "fixed",
    "gapr",
    "keep",
    "kneedle",
    "matched_k",
    "oracle_f1",
    "oracle_last_gold",
    "ratio_threshold",
    "score_threshold",
    "surprise",
    "taa_k",
    "top_p",
    "truncate",
]

METHODS: dict[str, Callable[..., Counts]] = {
    "fixed": fixed,
    "cost_matched": cost_matched,
    "gapr": gapr,
    "adaptive_k": adaptive_k,
    "surprise": surprise,
    "taa_k": taa_k,
    "autocut": autocut,
    "kneedle": kneedle,
    "score_threshold": score_threshold,
    "ratio_threshold": ratio_threshold,
    "top_p": top_p,
    "expected_f1": expected_f1,
}

ORACLES: dict[str, Callable[..., Counts]] = {"oracle_f1": oracle_f1, "oracle_last_gold": oracle_last_gold}

TruncateConfig = Annotated[
    FixedK
    | CostMatched
    | GapR
    | AdaptiveK
    | Surprise
    | TaaK
    | Autocut
    | Kneedle
    | ScoreThreshold
    | RatioThreshold
    | TopP
    | ExpectedF1,
    Field(discriminator="kind"),
]

CONFIGS: dict[str, type[Settings]] = {
    model.model_fields["kind"].default: model for model in get_args(get_args(TruncateConfig)[0])
}
"""The parameters of each method of METHODS."""


def truncate(scores: Scores, lengths: Counts, config: TruncateConfig) -> Counts:
    """Kept counts by the configured method; its parameters are the config's other fields."""
    return METHODS[config.kind](scores, lengths, **{name: value for name, value in config if name != "kind"})


def keep(scores: Sequence[float] | Scores, config: TruncateConfig) -> int:
    """Kept count of one ranked list; 0 for an empty one."""
    if isinstance(config, GapR):
        return cut_one(scores.tolist() if isinstance(scores, np.ndarray) else scores, config)
    return int(truncate(np.array([scores], dtype=np.float64), np.array([len(scores)]), config)[0])
