"""How figures are put on paper: one rule each, shared by page, table and terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NONE = "–"
MINUS = "−"


def percent(value: float | None, digits: int = 1) -> str:
    """A rate in [0, 1] in per cent without the sign: 0.433 -> "43.3"."""
    return NONE if value is None else f"{100 * value:.{digits}f}"


def percent_bounds(interval: Mapping[str, Any]) -> str:
    """The bounds of an interval of rates in per cent: "[38.1, 48.9]"; empty where there are none."""
    if interval["low"] is None:
        return ""
    return f"[{percent(interval['low'])}, {percent(interval['high'])}]"


def quantity(value: float | None) -> str:
    """A count or mean to about three significant digits, thousands apart: 12345.6 -> "12,346", 2.425 -> "2.42"."""
    if value is None:
        return NONE
    size = abs(value)
    digits = 0 if value == int(value) or size >= 1000 else 1 if size >= 100 else _digits(size)
    return f"{value:,.{digits}f}".replace("-", MINUS)


def signed(value: float | None, scale: float = 1.0) -> str:
    """A difference with its sign, times scale: (0.0123, 100) -> "+1.2"; whole zero has no sign."""
    if value is None:
        return NONE
    scaled = value * scale
    text = f"{abs(scaled):.1f}" if scale == 100 else quantity(abs(scaled))
    if not any(digit in text for digit in "123456789"):
        return text
    return ("+" if scaled > 0 else MINUS) + text


def signed_bounds(interval: Mapping[str, Any], scale: float = 1.0) -> str:
    """The bounds of a difference: "[−0.5, +2.9]"; empty where there are none."""
    if interval["low"] is None:
        return ""
    return f"[{signed(interval['low'], scale)}, {signed(interval['high'], scale)}]"


def share(interval: Mapping[str, Any]) -> str:
    """A share in per cent with its interval: "16.0 [10.1, 24.4]"."""
    return f"{percent(interval['mean'])} {percent_bounds(interval)}".strip()


def change(interval: Mapping[str, Any], scale: float = 1.0) -> str:
    """A difference with its interval, signed: "−2.0 [−5.0, +1.0]"."""
    return f"{signed(interval['mean'], scale)} {signed_bounds(interval, scale)}".strip()


def seconds(value: float | None) -> str:
    """A duration: "0.42 s", "12.3 s", "4 min 10 s", "1 h 02 min"."""
    if value is None:
        return NONE
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def money(value: float | None, currency: str) -> str:
    """An amount with its currency, below 1 to three digits: "0.000204 USD"; "not priced" for None, never 0."""
    if value is None:
        return "not priced"
    return f"{value:,.{_digits(value)}f} {currency}"


def threshold(value: float) -> str:
    """A judge score to four significant digits: 7.87512 -> "7.875"."""
    return f"{value:.4g}".replace("-", MINUS)


def reading(difference: Mapping[str, Any], scale: float = 1.0) -> str:
    """A difference in a sentence: "difference +1.2 points, 95 % CI [−0.5, +2.9] contains 0".

    difference: an engine.stats.Interval as a dict. scale 100 speaks of points, 1 of the figure's own unit.
    """
    if difference["mean"] is None:
        return "not compared: no question is scored in both runs"
    text = f"difference {signed(difference['mean'], scale)}" + (" points" if scale == 100 else "")
    if difference["low"] is None:
        return f"{text} on a single question"
    verb = "contains" if difference["low"] <= 0 <= difference["high"] else "excludes"
    return f"{text}, 95 % CI {signed_bounds(difference, scale)} {verb} 0"


def _digits(size: float) -> int:
    """Decimals that show a positive size with three digits, and never fewer than two."""
    return max(2, 2 - math.floor(math.log10(size))) if size > 0 else 2
