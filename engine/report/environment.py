"""The templates of all pages, with the filters that put figures on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from engine.report import wording
from engine.report.charts import interval_mark

_HERE = Path(__file__).parent


def environment(**filters: Callable[..., Any]) -> jinja2.Environment:
    """Templates of this folder: text is escaped, an unknown name is an error; `filters` come on top of the common."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {
        "percent": wording.percent,
        "bounds": wording.percent_bounds,
        "quantity": wording.quantity,
        "signed": wording.signed,
        "signed_bounds": wording.signed_bounds,
        "reading": wording.reading,
        "seconds": wording.seconds,
        "money": wording.money,
        "mark": interval_mark,
        **filters,
    }
    return made


def inline(*names: str) -> Markup:
    """Files of this folder, one after the other, to stand in a page as they are."""
    return Markup("".join((_HERE / name).read_text(encoding="utf-8") for name in names))
