"""How well stated probabilities agree with what happens: Brier score, reliability table, calibration error."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from engine.score.arrow import Floats

BINS = 10
_CLIP = 40.0


def probabilities(scores: npt.ArrayLike) -> Floats:
    """sigmoid of log-odds scores clipped to +-40; a missing one (NaN, -inf) counts as -40. Source: METHODS B6."""
    values = np.nan_to_num(np.asarray(scores, np.float64), nan=-_CLIP)
    return 1.0 / (1.0 + np.exp(-np.clip(values, -_CLIP, _CLIP)))


def brier(probability: npt.ArrayLike, truth: npt.ArrayLike) -> float | None:
    """Mean squared error of [n] probabilities of [n] bool truths; None for none."""
    errors = np.asarray(probability, np.float64) - np.asarray(truth, np.bool_)
    return float(np.mean(errors**2)) if errors.size else None


def reliability(probability: npt.ArrayLike, truth: npt.ArrayLike, *, bins: int = BINS) -> list[dict[str, Any]]:
    """Stated probability against observed rate in equal-width bins, the last one closed.

    One entry per bin: low, high, n, stated (mean probability) and observed (share of truths); both None in an empty
    bin. Source: METHODS B6.
    """
    stated, happened = np.asarray(probability, np.float64), np.asarray(truth, np.bool_)
    place = np.minimum((stated * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums, hits = np.bincount(place, stated, bins), np.bincount(place, happened, bins)
    return [
        {
            "low": i / bins,
            "high": (i + 1) / bins,
            "n": int(n),
            "stated": float(sums[i] / n) if n else None,
            "observed": float(hits[i] / n) if n else None,
        }
        for i, n in enumerate(counts)
    ]


def expected_calibration_error(table: list[dict[str, Any]]) -> float | None:
    """|stated - observed| of a reliability table's bins, averaged with their n as weights; None if all are empty."""
    filled = [row for row in table if row["n"]]
    total = sum(row["n"] for row in filled)
    return sum(row["n"] * abs(row["stated"] - row["observed"]) for row in filled) / total if total else None
