"""One question's whole trace for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from engine.records import Passage, Question
from engine.report.labels import ACTION_LABELS, METRIC_LABELS, REASON_LABELS
from engine.report.wording import percent
from engine.rows import row_to_question
from engine.schema import METRICS
from engine.score.evidence import gold_keys, key_of

BELOW_CUT = 3
"""Hits shown below the cut; the rest are counted."""

_LABEL_WIDTH = 10
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Part = str | tuple[str, str]
"""Words, or (words, style)."""


def render_trace(row: Mapping[str, Any], *, below_cut: int = BELOW_CUT) -> RenderableType:
    """A row of engine.schema.TRACES as a rich renderable: question, gold, every turn, answer, scores and usage.

    Gold passages carry a "*"; the cut is drawn through each ranked list, with at most below_cut hits under it.
    Control characters of recorded text are shown as "?", line breaks as spaces. rich drops the colours where the
    output is no terminal.
    """
    question = row_to_question(row)
    turns = (part for turn in row["turns"] for part in _turn(turn, question, below_cut))
    return Group(*_head(question), *turns, *_end(row))


def trace_text(row: Mapping[str, Any], *, width: int = 80, below_cut: int = BELOW_CUT) -> str:
    """The same as plain text, no line longer than width cells."""
    out = StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(render_trace(row, below_cut=below_cut))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _head(question: Question) -> Iterator[RenderableType]:
    yield _text((question.text, "bold"))
    kind = question.metadata.get("type")
    yield _text((f"{question.id}" + ("" if kind is None else f", type {kind}"), "dim"))
    yield Text()
    yield _labelled("gold", (" | ".join(question.golden_answers) or "none given", "green"))
    for fact in question.supporting:
        yield _labelled("support", fact.title, (_sentence(fact.sent_id), "dim"))


def _turn(turn: Mapping[str, Any], question: Question, below_cut: int) -> Iterator[RenderableType]:
    yield Text()
    read = f"   gold passages read so far: {turn['gold_retrieved']} of {len(gold_keys(question))}"
    yield _text((f"turn {turn['index']}", "bold cyan"), (read, "dim"))
    parts = [] if turn["verdict"] is None else list(_verdict(turn["verdict"]))
    if turn["probe_answer"] is not None:
        parts.append(_labelled("probe", turn["probe_answer"] or "(empty)"))
    if turn["action"] is not None:
        parts.append(_labelled("next", ACTION_LABELS[turn["action"]]))
    if turn["unexecuted"] is not None:
        parts.append(_labelled("not run", turn["unexecuted"]))
    if turn["query"] is not None:
        parts += [_labelled("query", turn["query"], (f"  ({turn['query_source']})", "dim"))]
        parts += _hits(turn, question, below_cut)
    for item in turn["evidence"]:
        mark = _mark(question, item)
        where = (f"{mark} {item['title']}", "yellow" if mark == "*" else "")
        source = _labelled("evidence", where, (_sentence(item["sent_id"]), "dim"))
        parts += [source, Padding(_text(item["text"]), (0, 0, 0, _LABEL_WIDTH + 2))]
    if turn["memory_dropped"]:
        parts.append(_labelled("left out", (f"{turn['memory_dropped']} evidence spans did not fit the prompt", "red")))
    yield from (Padding(part, (0, 0, 0, 2)) for part in parts)


def _verdict(verdict: Mapping[str, Any]) -> Iterator[RenderableType]:
    word = ("sufficient", "green") if verdict["sufficient"] else ("insufficient", "yellow")
    score = "" if verdict["score"] is None else f"  score {verdict['score']:+.2f}"
    chance = "" if verdict["p_sufficient"] is None else f"  p {verdict['p_sufficient']:.3f}"
    how = "" if verdict["parse_status"] == "ok" else f"  ({verdict['parse_status']})"
    yield _labelled("verdict", word, (f"{score}{chance}{how}", "dim"))
    for gap in verdict["gaps"]:
        named = " -> ".join(part for part in (gap["target"], gap["slot"]) if part)
        detail = f": {gap['description']}" if gap["description"] not in ("", named) else ""
        yield _labelled("gap", f"{named}{detail}", (f"  ({gap['category']})", "dim"))
    if verdict["parse_status"] in ("unparsed", "truncated"):
        yield _labelled("reply", verdict["raw"])


def _hits(turn: Mapping[str, Any], question: Question, below_cut: int) -> Iterator[RenderableType]:
    hits, kept = turn["hits"], turn["kept"]
    if not hits:
        yield _labelled("", ("nothing found", "red"))
    digits = 2 if hits and abs(hits[0]["score"]) >= 10 else 4
    for position, hit in enumerate(hits[: kept + below_cut]):
        if position == kept:
            yield _cut(kept, len(hits))
        mark = _mark(question, hit)
        style = "dim" if position >= kept else "yellow" if mark == "*" else ""
        place = f"{mark}{hit['rank']:>3} {hit['score']:>8.{digits}f}"
        yield _grid(14, _text((place, style)), _text((hit["title"], style), (f"  {hit['doc_id']}", "dim")))
    if hits and kept >= len(hits):
        yield _cut(kept, len(hits))
    unseen = hits[kept + below_cut :]
    if unseen:
        gold = sum(_mark(question, hit) == "*" for hit in unseen)
        yield _text((f"     {len(unseen)} more" + (f", {gold} of them gold" if gold else ""), "dim"))
    if turn["seen_dropped"]:
        lost = f", {turn['gold_dropped']} of them unread gold" if turn["gold_dropped"] else ""
        yield _text((f"     {turn['seen_dropped']} hits dropped as already seen{lost}", "dim"))


def _cut(kept: int, found: int) -> Text:
    return _text((f"---- cut: {kept} of {found} read ".ljust(44, "-"), "cyan"))


def _end(row: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text()
    reason = REASON_LABELS.get(row["stop_reason"], row["stop_reason"])
    yield _labelled("stopped", reason, (f", {row['n_retrievals']} retrievals", "dim"))
    yield _labelled("answer", ("none" if row["answer"] is None else row["answer"] or "(empty)", "bold"))
    if row["error"] is not None:
        yield _labelled("error", (f"{row['error']['type']}: {row['error']['message']}", "red"))
    scores = [(METRIC_LABELS[name].name, row["metrics"][name]) for name in METRICS]
    known = [_text(f"{label:<18} {percent(value):>5}") for label, value in scores if value is not None]
    shown = Columns(known, padding=(0, 3), column_first=True) if known else _text("not scored")
    yield _grid(_LABEL_WIDTH, _text(("scores, %", "dim")), shown)
    for used in row["usage"]:
        tokens = f", {used['prompt_tokens']:,} + {used['completion_tokens']:,} tokens"
        asked = used["prompt_tokens"] or used["completion_tokens"]
        yield _labelled("usage", f"{used['role']:<10} {used['calls']:>3} calls{tokens if asked else ''}")
    yield _text(("* gold", "dim"))


def _sentence(number: int | None) -> str:
    return "" if number is None else f", sentence {number}"


def _mark(question: Question, item: Mapping[str, Any]) -> str:
    return "*" if key_of(question, Passage(item["doc_id"], item["title"], "")) else " "


def _labelled(label: str, *parts: Part) -> Table:
    return _grid(_LABEL_WIDTH, _text((label, "dim")), _text(*parts))


def _grid(width: int, left: RenderableType, right: RenderableType) -> Table:
    grid = Table.grid(padding=0)
    grid.add_column(width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(left, right)
    return grid


def _text(*parts: Part) -> Text:
    text = Text(overflow="fold")
    for part in parts:
        words, style = (part, "") if isinstance(part, str) else part
        text.append(_CONTROL.sub(lambda m: " " if m[0] in "\n\t\r" else "?", words), style or None)
    return text
