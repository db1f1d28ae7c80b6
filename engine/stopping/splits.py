"""Calibration and evaluation questions: a stable draw that keeps repeated questions on one side, and a leak check."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import DataError

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Split:
    """Positions of the questions on either side, each in the order given."""

    calibration: tuple[int, ...]
    evaluation: tuple[int, ...]


def normalise_question(text: str) -> str:
    """The text as questions are compared: NFKC, case folded, single spaces, no closing punctuation."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip("?!. ")


def split_questions(ids: Sequence[str], texts: Sequence[str], *, share: float, seed: int | str = 0) -> Split:
    """`share` of the questions for calibration, the others for evaluation, by rank of SHA-256(seed, id, text).

    Questions with the same normalised text form a group, ranked by its lowest digest and kept whole; groups go to
    calibration until it has round(share * n) questions or just more. The rank of a question depends on nothing but
    its id, its text and the seed, so neither the order nor the number of the others moves it. Raises DataError for
    a repeated id or when one side would be empty; ValueError for a share outside (0, 1). Source: METHODS B4.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be within (0, 1), got {share}")
    if repeated := [name for name, count in Counter(ids).items() if count > 1]:
        raise DataError(f"cannot split questions: {_named(repeated)} used more than once; ids must be unique")
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for position, text in enumerate(texts):
        groups[normalise_question(text)].append(position)

    def rank(group: str) -> bytes:
        return min(hashlib.sha256(f"{seed}\0{ids[i]}\0{group}".encode()).digest() for i in groups[group])

    wanted, chosen = round(share * len(ids)), set[int]()
    for group in sorted(groups, key=rank):
        if len(chosen) >= wanted:
            break
        chosen.update(groups[group])
    if not chosen or len(chosen) == len(ids):
        raise DataError(
            f"a share of {share} of {len(ids)} questions ({len(groups)} different) leaves one side empty; "
            "take more questions or another share"
        )
    return Split(tuple(sorted(chosen)), tuple(i for i in range(len(ids)) if i not in chosen))


def check_disjoint(
    calibration_ids: Sequence[str],
    calibration_texts: Sequence[str],
    evaluation_ids: Sequence[str],
    evaluation_texts: Sequence[str],
) -> None:
    """Nothing if no id and no normalised text is on both sides; else a DataError that names examples of both kinds.

    A threshold that is evaluated on questions it was chosen on looks better than it is.
    """
    shared_ids = sorted(set(calibration_ids) & set(evaluation_ids))
    ours = {normalise_question(text): name for name, text in zip(calibration_ids, calibration_texts, strict=True)}
    shared_texts = [
        f"{ours[key]} = {name}"
        for name, text in zip(evaluation_ids, evaluation_texts, strict=True)
        if (key := normalise_question(text)) in ours and name not in set(shared_ids)
    ]
    found = []
    if shared_ids:
        found.append(f"{_named(shared_ids)} on both sides")
    if shared_texts:
        found.append(f"the same text under two ids ({_listed(shared_texts)})")
    if found:
        raise DataError(
            f"calibration and evaluation questions overlap: {' and '.join(found)}; remove them from one side"
        )


def _named(ids: Sequence[str]) -> str:
    return f"{'id' if len(ids) == 1 else f'{len(ids)} ids'} ({_listed(ids)})"


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:EXAMPLES]) + (", …" if len(items) > EXAMPLES else "")
