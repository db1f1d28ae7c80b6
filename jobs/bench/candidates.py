"""Score-only truncation rules of our own beside GapR: tuned on train questions, judged on the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.errors import DataError
from engine.report.markdown import markdown_head, markdown_row
from engine.score.arrow import Floats, Ints
from engine.score.truncation import CutScores, Lists, cut_scores, lists_of, matched_fixed
from engine.score.truncation_kept import kept_table
from engine.score.truncation_lists import LISTS, Cell, cells_of, of_cell
from engine.score.truncation_settings import Setting
from engine.stats import LEVEL, Paired, paired_ci
from engine.truncate import Counts, Scores, adaptive_k, expected_f1, gapr
from engine.truncate.ranked import bounded, ranked
from jobs.truncate_input import ListInput

TRAIN = "train"
TUNED_ON = "bm25"
DEPTH = 30
MIN_TAIL = 5
"""Fewest spacings that a scale is taken from."""


@click.command()
@click.option("--runs", required=True, metavar="DIR", help="Folder with the runs of `stopgap bench retrieval`.")
@click.option(
    "--level", type=click.FloatRange(0.5, 1, max_open=True), default=LEVEL, show_default=True, help="Of intervals."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write all figures to this file.")
def candidates(runs: str, level: float, json_file: str | None) -> None:
    """Judges rules for cutting a list of 30 hits that see its scores alone, and are told no gold, against GapR.

    Each rule gets one setting for all question sets, by the mean over the sets of macro-F1 on the train questions of
    the BM25 runs; a second one by the rate of complete evidence among settings that keep no more than GapR does by
    default. Both are judged on all other questions of all runs. Runs without train questions are left out. The folder
    must hold one run per question set and ranker.
    """
    tables = read_runs(runs)
    tried = all_settings()
    train = [cuts(table, tried, train=True) for cell, table in tables.items() if cell[1] == TUNED_ON]
    means = {
        name: np.mean([[getattr(scores, name).mean() for scores in found.values()] for _, found in train], axis=0)
        for name in ("f1", "complete", "kept")
    }
    by_default = means["kept"][[setting.method for setting in tried].index("gapr")]
    chosen = {
        "f1": best(tried, means["f1"], means["kept"], np.inf),
        "complete": best(tried, means["complete"], means["kept"], by_default),
    }
    figures: dict[str, Any] = {}
    for objective, settings in chosen.items():
        click.echo(f"\nBest {objective} on train: {', '.join(setting.name for setting in settings.values())}")
        figures[objective] = {"/".join(cell): judge(table, settings, level) for cell, table in tables.items()}
        click.echo(markdown(figures[objective]))
    if json_file:
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def read_runs(folder: str) -> dict[Cell, pa.Table]:
    """The lists of every run in the folder that has train questions."""
    found = ListInput()
    for run in sorted(path.parent for path in Path(folder).glob("*/manifest.json")):
        found.add_source(str(run))
    lists = pa.Table.from_batches(list(found.batches()), schema=LISTS)
    tables = {cell: of_cell(lists, cell) for cell in cells_of(lists) if TRAIN in found.coverage[cell]}
    if not any(ranker == TUNED_ON for _, ranker in tables):
        raise DataError(
            f"{folder}: a run of {TUNED_ON} with questions of the split '{TRAIN}' was needed, found "
            f"{len(found.coverage)} runs; make them with `stopgap bench retrieval --runs-dir {folder}`"
        )
    return tables


@dataclass(frozen=True, slots=True)
class Tried(Setting):
    """A rule with values for its parameters."""

    rule: Callable[..., Counts] = gapr
    values: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """The rule and its values."""
        return " ".join([self.method, *(f"{name}={value:g}" for name, value in self.values)])

    def keep(self, scores: Floats, lengths: Ints, gold: object, n_gold: object) -> Ints:
        """How many hits to keep of each list."""
        return self.rule(scores, lengths, **dict(self.values))


def all_settings() -> list[Tried]:
    """Every combination of every grid."""
    return [
        Tried(method, rule=rule, values=tuple(zip(grid, values, strict=True)))
        for method, (rule, grid) in RULES.items()
        for values in product(*grid.values())
    ]


def cuts(table: pa.Table, settings: Sequence[Setting], *, train: bool) -> tuple[Lists, dict[Setting, CutScores]]:
    """The lists of the train questions, or of all others, and how each setting cuts them."""
    cells = dict.fromkeys(cells_of(table), settings)
    splits = set(table["split"].unique().to_pylist())
    cut = kept_table(table, cells, DEPTH, splits & {TRAIN} if train else splits - {TRAIN})
    lists = lists_of(cut)
    kept = np.array(cut.filter(pc.greater(cut["n_gold"], 0))["kept"].to_pylist()).T
    return lists, {setting: cut_scores(lists, counts) for setting, counts in zip(settings, kept, strict=True)}


def best(tried: Sequence[Tried], values: Floats, costs: Floats, most: float) -> dict[str, Tried]:
    """The setting of each method with the highest value at a cost of at most `most`; the cheapest if there is none."""
    found: dict[str, Tried] = {}
    for method in RULES:
        places = [i for i, setting in enumerate(tried) if setting.method == method]
        within = [i for i in places if costs[i] <= most] or [min(places, key=lambda i: costs[i])]
        found[method] = tried[max(within, key=lambda i: (values[i], -costs[i]))]
    return found


def judge(table: pa.Table, settings: Mapping[str, Tried], level: float = LEVEL) -> dict[str, Any]:
    """Kept count, macro-F1 and complete evidence of each setting, and their differences from those of the others.

    dealt_f1 is the macro-F1 when a setting's counts are dealt out to the lists at random: what it owes to the spread
    of its counts rather than to where it cuts.
    """
    lists, found = cuts(table, list(settings.values()), train=False)
    rivals = {name: found[settings[name]] for name in ("gapr", "gapr tuned", "largest gap")}
    figures: dict[str, Any] = {}
    for setting, cut in found.items():
        against = {**rivals, "fixed": matched_fixed(lists, float(cut.kept.mean())).scores}
        figures[setting.name] = {
            "lists": len(lists),
            **{name: float(getattr(cut, name).mean()) for name in ("kept", "f1", "complete")},
            "dealt_f1": dealt_f1(lists, cut.kept.astype(np.int64)),
            **{
                f"{score}_over": {
                    name: asdict(paired(lists, getattr(other, score), getattr(cut, score), level))
                    for name, other in against.items()
                }
                for score in ("f1", "complete")
            },
        }
    return figures


def paired(lists: Lists, other: Floats, own: Floats, level: float) -> Paired:
    """own minus other, by question."""
    return paired_ci(lists.by_question(other), lists.by_question(own), level=level)


def dealt_f1(lists: Lists, kept: Ints) -> float:
    """The expected macro-F1 of the same counts in random order."""
    counts, shares = np.unique(kept, return_counts=True)
    return float(np.average([cut_scores(lists, np.minimum(k, lists.length)).f1.mean() for k in counts], weights=shares))


def markdown(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """One row per run and setting; everything but the kept count in %."""
    f1, complete = ("gapr", "gapr tuned", "largest gap", "fixed"), ("gapr", "fixed")
    head = ["run", "rule", "kept", "F1", "dealt", *(f"F1 - {name}" for name in f1)]
    head += ["complete", *(f"complete - {name}" for name in complete)]
    lines = markdown_head(*head)
    for cell, rows in figures.items():
        for name, row in rows.items():
            cells = [cell, name, f"{row['kept']:.2f}", f"{100 * row['f1']:.1f}", f"{100 * row['dealt_f1']:.1f}"]
            cells += [_difference(row["f1_over"][other]) for other in f1]
            cells += [f"{100 * row['complete']:.1f}", *(_difference(row["complete_over"][other]) for other in complete)]
            lines.append(markdown_row(*cells))
    return "\n".join(lines)


def _difference(found: Mapping[str, Any]) -> str:
    interval = found["difference"]
    return f"{100 * interval['mean']:+.1f} [{100 * interval['low']:+.1f}, {100 * interval['high']:+.1f}]"


def z_score(scores: Scores, lengths: Counts, *, z: float) -> Counts:
    """Hits more than z standard deviations above the list's mean."""
    lists = ranked(scores, lengths)
    n = np.maximum(lists.lengths, 1)[:, None]
    off = np.where(lists.inside, lists.scores - lists.scores.sum(axis=1, keepdims=True) / n, 0.0)
    above = off > z * np.sqrt((off**2).sum(axis=1, keepdims=True) / n)
    return bounded((above & lists.inside).sum(axis=1), lists.lengths, 1, None)


def tail_f1(scores: Scores, lengths: Counts, *, skip: int, spread: float) -> Counts:
    """The prefix of the highest expected F1, if the hits after the first `skip` follow an exponential law.

    A line through score over log rank of those hits says how many hits of no worth are expected above each score;
    `spread` stretches its slope. What exceeds that number is gold.
    """
    lists = ranked(scores, lengths)
    ranks = _ranks(lists.scores)
    tail = lists.inside & (ranks > skip)
    n = np.maximum(tail.sum(axis=1, keepdims=True), 1)
    x = np.where(tail, np.log(ranks), 0.0)
    x_mean, y_mean = x.sum(axis=1, keepdims=True) / n, np.where(tail, lists.scores, 0.0).sum(axis=1, keepdims=True) / n
    x_off, y_off = np.where(tail, x - x_mean, 0.0), np.where(tail, lists.scores - y_mean, 0.0)
    slope = -(x_off * y_off).sum(axis=1, keepdims=True) / np.maximum((x_off**2).sum(axis=1, keepdims=True), 1e-12)
    top = y_mean + slope * x_mean
    fall = np.divide(top - lists.scores, spread * slope, out=np.full_like(lists.scores, np.inf), where=slope > 0)
    gold = np.where(lists.inside, ranks - np.minimum(np.exp(np.minimum(fall, 700.0)), ranks), 0.0)
    return _best_prefix(np.maximum.accumulate(gold, axis=1), lists.lengths)


def weighted_gap(scores: Scores, lengths: Counts, *, power: float) -> Counts:
    """The largest rank ** power * gap: the largest gap at 0, at 1 the largest of Rényi's spacings."""
    lists = ranked(scores, lengths)
    if lists.scores.shape[1] < 2:
        return lists.lengths
    return _largest(_spacings(lists.scores, lists.inside, power), lists.lengths)


def significant_gap(scores: Scores, lengths: Counts, *, alpha: float) -> Counts:
    """The furthest spacing too large for the exponential tail below it, at level alpha; without one the least likely.

    Under an exponential tail Rényi's spacings are independent with one mean, so a spacing over the mean of the m below
    it follows F(2, 2 m).
    """
    lists = ranked(scores, lengths)
    if lists.scores.shape[1] < 2:
        return lists.lengths
    spacings = _spacings(lists.scores, lists.inside, 1.0)
    below = np.maximum(lists.lengths[:, None] - 1 - np.arange(1, lists.scores.shape[1]), 0)
    rest = np.maximum(spacings, 0.0)[:, ::-1].cumsum(axis=1)[:, ::-1] - np.maximum(spacings, 0.0)
    excess = np.divide(spacings, rest, out=np.full_like(rest, np.inf), where=rest > 1e-12)
    chance = np.where(below >= MIN_TAIL, (1 + np.maximum(excess, 0.0)) ** -below.astype(float), 1.0)
    significant = np.where(chance < alpha, np.arange(1, lists.scores.shape[1]), 0).max(axis=1)
    return np.where(significant > 0, significant, _largest(-chance, lists.lengths))


def two_segments(scores: Scores, lengths: Counts, *, power: float) -> Counts:
    """The split into two level segments that differ most: squared difference of means * (k (n - k)) ** power.

    power 1 is least squares; a smaller one favours short first segments.
    """
    lists = ranked(scores, lengths)
    if lists.scores.shape[1] < 2:
        return lists.lengths
    k = np.arange(1.0, lists.scores.shape[1])
    left = lists.lengths[:, None] - k
    sums = lists.scores.cumsum(axis=1)
    rest = np.maximum(left, 1)
    apart = sums[:, :-1] / k - (sums[:, -1:] - sums[:, :-1]) / rest
    return _largest(np.where(left > 0, apart**2 * (k * rest) ** power, -1.0), lists.lengths)


def _spacings(scores: Scores, inside: Any, power: float) -> Floats:
    """rank ** power * gap, -1 past the end."""
    ranks = _ranks(scores)[:-1]
    return np.where(inside[:, 1:], (scores[:, :-1] - scores[:, 1:]) * ranks**power, -1.0)


def _ranks(scores: Scores) -> Floats:
    return np.arange(1.0, scores.shape[1] + 1)


def _largest(values: Floats, lengths: Counts) -> Counts:
    """The rank of the largest value, for lists that have a place to cut at."""
    rank: Counts = values.argmax(axis=1) + 1
    return np.minimum(rank, lengths)


def _best_prefix(gold: Floats, lengths: Counts) -> Counts:
    """The k of the highest gold[k] / (k + all gold)."""
    return _largest(gold / (_ranks(gold) + gold[:, -1:]), lengths) if gold.shape[1] else lengths


RULES: dict[str, tuple[Callable[..., Counts], dict[str, Sequence[float]]]] = {
    "gapr": (gapr, {}),
    "gapr tuned": (gapr, {"eta": (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 0.9), "r": (1, 2, 3, 4, 5, 8)}),
    "largest gap": (adaptive_k, {}),
    "z_score": (z_score, {"z": tuple(z / 10 for z in range(1, 31))}),
    "expected_f1": (
        expected_f1,
        {
            "temperature": (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.8, 1.0),
            "discount": (0.0, 0.25, 0.5, 0.75, 1.0),
        },
    ),
    "tail_f1": (tail_f1, {"skip": (2, 3, 5, 10), "spread": (0.6, 0.7, 0.8, 0.9, 1.0, 1.05, 1.1)}),
    "weighted_gap": (weighted_gap, {"power": (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)}),
    "significant_gap": (significant_gap, {"alpha": (0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)}),
    "two_segments": (two_segments, {"power": (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0, 1.25, 1.5)}),
}
"""Name -> rule and the values tried for its parameters."""
