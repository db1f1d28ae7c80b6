"""An audit and a replay of stopping policies for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from engine.report.wording import change, money, percent, percent_bounds, quantity, seconds, signed, signed_bounds

_CELLS = (
    ("safe_native_right", "safe, native right"),
    ("safe_native_wrong", "safe, native wrong"),
    ("unsafe_native_right", "not safe, native right"),
    ("unsafe_native_wrong", "not safe, native wrong"),
)


def render_audit(figures: Mapping[str, Any]) -> RenderableType:
    """The figures of engine.stopping.audit: what stopping could gain and save, and where wrong answers were lost."""
    quality, cost = figures["quality"], figures["cost"]
    table = _grid("", "", "")
    table.show_header = False
    for label, interval in (
        ("native EM, %", quality["native"]),
        ("quality oracle, %", quality["oracle"]),
        ("some state safe, %", quality["any_state"]),
        ("headroom, points", quality["headroom"]),
        ("avoidable searches, %", cost["avoidable"]),
    ):
        table.add_row(label, percent(interval["mean"]), percent_bounds(interval))
    for label, name in (("searches per question", "per_question"), ("with the cost oracle", "oracle_per_question")):
        table.add_row(label, quantity(cost[name]["mean"]), _bounds(cost[name]))
    saved = f"{cost['avoidable_searches']:,} of {cost['searches']:,} searches avoidable"
    branch = Text(f"{figures['branch']['name']}: {figures['branch']['meaning']} ({saved})", "bold")
    parts = (_cells(figures), *_outcomes(figures), Text(), _budgets(figures))
    return Group(*_about(figures), table, branch, Text(), *parts)


def render_replay(figures: Mapping[str, Any]) -> RenderableType:
    """The figures of engine.stopping.replay: a row per policy, the fixed budgets of its cost under it."""
    return Group(
        *_about(figures),
        _quality(figures),
        Text(),
        _risk(figures),
        Text(),
        _spending(figures),
        *(part for row in figures["policies"] if row["decision"] for part in _verdicts(row, figures)),
    )


def render_sweep(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """A row per judge threshold: quality, risk and cost along the frontier."""
    table = _grid("threshold", "stops", "unsafe", "risk, %", "EM, %", "searches", "judge calls")
    for row in rows:
        risk = row["unsafe"] / row["stops"] if row["stops"] else None
        table.add_row(
            f"{row['threshold']:.6g}",
            quantity(row["stops"]),
            quantity(row["unsafe"]),
            percent(risk),
            percent(row["em"]),
            quantity(row["searches"]),
            quantity(row["judge_calls"]),
        )
    return table


def render_live(figures: Mapping[str, Any]) -> RenderableType:
    """What confirm found, with the questions that ended otherwise than predicted."""
    questions = figures["questions"]
    told = f"{figures['stops_agree']} of {questions} questions stopped where predicted, {figures['scores_agree']} of "
    told += f"{questions} with the same scores too"
    if figures["missing"]:
        told += f"; {figures['missing']} were not asked or failed"
    if not figures["differ"]:
        return Text(told)
    table = _grid("question", "searches: predicted", "live", "EM: predicted", "live", "F1: predicted", "live")
    for row in figures["differ"]:
        pairs = ((row["predicted"][name], row["live"][name]) for name in ("searches", "em", "f1"))
        table.add_row(row["question_id"], *(quantity(value) for pair in pairs for value in pair))
    return Group(Text(told), table)


def _about(figures: Mapping[str, Any]) -> Iterator[RenderableType]:
    truth = figures["truth"]
    yield Text(f"truth {truth['name']}: {truth['meaning']}", "dim" if truth["name"] == "probe" else "yellow")
    yield Text(
        f"{figures['questions']:,} questions, {figures['states_before_search']:,} states before a search, "
        f"{figures['safe_states']:,} of them safe",
        "dim",
    )
    for why, count in Counter(figures["excluded"].values()).most_common():
        yield Text(f"left out: {count:,} questions, {why}", "yellow")


def _cells(figures: Mapping[str, Any]) -> Table:
    table = _grid("", *(label for _, label in _CELLS))
    for name, label in (("states", "states before a search"), ("questions", "questions")):
        table.add_row(label, *(f"{figures['cells'][name][cell]:,}" for cell, _ in _CELLS))
    return table


def _outcomes(figures: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text()
    for name, found in figures["outcomes"].items():
        yield Text(f"{found['questions']:>7,}  {name:<28} {found['meaning']}")
    if figures["truth"]["name"] == "probe":  # the outcomes count them
        return
    late = "safe only at a state without a further search, native wrong: counted by no oracle"
    yield Text(f"{figures['last_state_only']:>7,}  {late}", "dim")


def _budgets(figures: Mapping[str, Any]) -> Table:
    table = _grid("fixed budget", "EM, %", "", "F1, %", "searches", "have the state")
    for row in figures["fixed_budgets"]:
        table.add_row(str(row["k"]), *_scores(row), quantity(row["searches"]), f"{row['exact']:,}")
    return table


def _quality(figures: Mapping[str, Any]) -> Table:
    table = _grid("policy", "EM, %", "", "F1, %", "searches", "EM to native, points", "right>wrong", "wrong>right")
    for row in figures["policies"]:
        against = row["against_native"]
        moved = ("", "", "")
        if against is not None:
            moved = (
                change(against["em"]["difference"], 100),
                str(against["em"]["lower"]),
                str(against["em"]["higher"]),
            )
        table.add_row(_name(row["policy"]), *_scores(row), quantity(row["searches"]["mean"]), *moved)
        for label, fixed in _matched(row):
            table.add_row(Text(f"  {label}", "dim"), *_scores(fixed), quantity(fixed["searches"]), "", "", "")
    return table


def _matched(row: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The fixed budgets beside a policy; one alone for a cost that it has exactly."""
    matched = row["matched"]
    if matched is None:
        return
    lower, upper = matched["lower"], matched["upper"]
    yield f"fixed:{lower['k']}", lower
    if matched["mixture"]["share_upper"]:
        yield f"fixed:{upper['k']}", upper
        yield "both, same cost", matched["mixture"]


def _risk(figures: Mapping[str, Any]) -> Table:
    table = _grid("policy", "stops", "safe", "unsafe", "accepted risk, %", "", "opportunity recall, %", "", "delay")
    for row in figures["policies"]:
        stops = row["stops"]
        rates = (stops["accepted_risk"], stops["opportunity_recall"])
        shown = [part for rate in rates for part in (percent(rate["mean"]), percent_bounds(rate))]
        counts = (str(stops[name]) for name in ("stops", "safe", "unsafe"))
        table.add_row(_name(row["policy"]), *counts, *shown, quantity(stops["mean_delay"]))
    return table


def _spending(figures: Mapping[str, Any]) -> Table:
    currency = figures["prices"]["currency"]
    kinds = ("loop", "judge", "probe")
    table = _grid("policy", *(f"{kind} calls" for kind in kinds), "tokens / question", "money / question", "model time")
    for row in figures["policies"]:
        spent = row["spent"]
        table.add_row(
            _name(row["policy"]),
            *(quantity(spent["by_kind"][kind]["calls"]) for kind in kinds),
            quantity(spent["tokens_per_question"]),
            money(spent["money_per_question"], currency),
            seconds(spent["seconds_per_question"]),
        )
    return table


def _verdicts(row: Mapping[str, Any], figures: Mapping[str, Any]) -> Iterator[RenderableType]:
    """What is to be said of a policy, under its name."""
    words = [row["decision"]["sentence"]]
    if row["matched"] and (gain := row["matched"]["em_gain"]["difference"])["mean"] is not None:
        words.append(
            f"EM {signed(gain['mean'], 100)} points {signed_bounds(gain, 100)} over fixed budgets of its cost."
        )
    if row["judge_pays"]:
        words += _pays(row["judge_pays"], figures["prices"]["currency"])
    yield Text(f"\n{_name(row['policy'])}", "bold")
    yield from (Padding(Text(text), (0, 0, 0, 2)) for text in words)


def _pays(pays: Mapping[str, Any], currency: str) -> Iterator[str]:
    asked = f"Judge calls {signed(pays['judge_calls'])}, probe calls {signed(pays['probe_calls'])} against native"
    yield f"{asked}, for {quantity(pays['searches_saved'])} searches saved."
    if pays["break_even"] is not None:
        yield (
            f"They cost {money(pays['watching'], currency)}: a search must cost {money(pays['break_even'], currency)} "
            f"to pay for them, {money(pays['break_even_with_loop'], currency)} with the loop's own savings."
        )
    net = pays["net_saving"]
    if net is not None and net["mean"] is not None:
        low, high = net["low"], net["high"]
        verdict = "not shown either way" if low is None or low <= 0 <= high else "pays" if low > 0 else "does not pay"
        yield f"Net saving per question {signed(net['mean'])} {signed_bounds(net)} {currency}: {verdict}."


def _name(policy: str) -> str:
    """A policy's name with its threshold to six digits; the figures have them all."""
    kind, _, value = policy.partition(":")
    return f"{kind}:{float(value):.6g}" if kind == "judge" else policy


def _scores(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """EM with its bounds and F1, with coverage where a question has no score."""
    em, f1 = row["em"], row["f1"]
    partial = "" if em["n"] == em["asked"] else f" ({em['n']}/{em['asked']})"
    return f"{percent(em['mean'])}{partial}", percent_bounds(em), percent(f1["mean"])


def _bounds(interval: Mapping[str, Any]) -> str:
    return "" if interval["low"] is None else f"[{quantity(interval['low'])}, {quantity(interval['high'])}]"


def _grid(first: str, *names: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column(first, no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table
