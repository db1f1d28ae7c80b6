"""The truncation page, its charts and the terminal table, from figures of a small comparison."""

import re
import xml.etree.ElementTree as ET
from io import StringIO
from itertools import pairwise

import pyarrow as pa
import pytest
from browser import BROWSER, dump_dom
from rich.console import Console

from engine.report.truncation_charts import envelope, highest, overview_chart, panel_chart
from engine.report.truncation_page import render_page
from engine.report.truncation_rows import METHOD_ROWS, method_rows
from engine.report.truncation_table import render_table
from engine.report.truncation_wording import coverage_notes, heading, microseconds
from engine.score.truncation_blocks import MemoryBlocks
from engine.score.truncation_compare import Fit, Request, compare
from engine.score.truncation_lists import LISTS, Coverage
from engine.score.truncation_settings import methods
from jobs.terminal import WIDTH

NASTY = "<script>document.title='pwned'</script>"


def figures(names=None, **request):
    """Twelve lists of two rankers, each in a split for fitting and one to report on."""
    rows = []
    for number in range(24):
        gold = [number % 5 < 3, number % 3 == 0, False, number % 2 == 0, False, False, False, False, False, False]
        rows.append(
            {
                "dataset": "toy",
                "ranker": (NASTY, "dense")[number % 2],
                "split": ("train", "dev")[number // 2 % 2],
                "question_id": f"q{number}",
                "list_id": f"q{number}",
                "doc_ids": [f"x{i}" for i in range(10)],
                "scores": [20.0 - i - 3 * (i > number % 4) for i in range(10)],
                "gold": gold,
                "n_gold": sum(gold) + 1 if number == 4 else sum(gold),
                "weight": float(any(gold)),
                "tokens": [5] * 10 if number < 12 else None,
            }
        )
    table = pa.Table.from_pylist(rows, schema=LISTS)
    splits = {split: Coverage(lists=6, scored=5, missing=2, unjudged=1, duplicates=3) for split in ("train", "dev")}
    coverage = {("toy", NASTY): splits, ("toy", "dense"): splits}
    found = compare(MemoryBlocks(table.to_batches()), coverage, Request(methods(names), **request)).figures
    return {**found, "overlap": 0}


@pytest.fixture(scope="module")
def fitted():
    return figures(["fixed", "gapr", "adaptive_k", "oracle_f1"], fit=Fit(frozenset({"train"})), depth=9)


def svgs(page):
    return [ET.fromstring(text) for text in re.findall(r"<svg class=\"(?:overview|panel)\".*?</svg>", page)]


def test_the_page_shows_every_cell_and_loads_nothing(fitted):
    page = render_page(fitted)
    assert "<script" not in page
    assert "http:" not in page + page.replace("https:", "http:")
    assert page.count("&lt;script&gt;document.title=") >= 2
    text = re.sub(r"<[^>]+>", " ", page)
    for words in ("their first 9 documents", "best Macro-F1 on train", "left out, no list: 2 of 7 queries"):
        assert words in re.sub(r"\s+", " ", text)
    charts = svgs(page)
    assert [chart.get("class") for chart in charts] == [*["overview"] * 2, *["panel"] * 8] * 2
    assert "Fitted parameters" in page
    assert "Tokens" in page


def test_the_page_of_a_named_baseline_says_so():
    page = render_page(figures(["fixed", "gapr", "score_threshold"], baseline="fixed"))
    assert "Against fixed<" in page
    assert "Fitted parameters" not in page
    assert "score_threshold has no default" in page


def test_overview_dots_stand_at_their_means_and_labels_do_not_collide():
    curve = [{"setting": f"fixed k={k}", "kept": k, "f1": 0.1 * k} for k in range(1, 5)]
    settings = [{"setting": f"m{i} x=1", "kept": 2.0, "f1": 0.2 + 0.001 * i} for i in range(8)]
    root = ET.fromstring(overview_chart(curve, settings, "f1", "Macro-F1"))
    dots = [dot for dot in root.iter("circle") if dot.get("class") == "dot method"]
    assert len(dots) == 8
    assert {dot.get("cx") for dot in dots} == {"163.0"}  # 34 + (420 - 34 - 128) * 2 / 4
    assert dots[0].find("title").text == "m0 x=1: 20.0 % at 2 documents"
    names = {text.text: float(text.get("y")) for text in root.iter("text") if re.match(r"m\d", text.text or "")}
    assert sorted(names) == [f"m{i}" for i in range(8)]
    heights = sorted(names.values())
    assert all(b - a >= 13.9 for a, b in pairwise(heights))
    assert max(heights) < 300
    assert [line.get("class") for line in root.iter("polyline")] == ["line fixedline"]


def test_a_panel_joins_the_best_settings_and_rings_the_compared_one():
    grid = [{"setting": f"s{k}", "kept": k, "f1": f1} for k, f1 in ((3, 0.2), (1, 0.1), (2, 0.3), (4, 0.4))]
    assert [point["kept"] for point in envelope(grid, "f1")] == [1, 2, 4]
    root = ET.fromstring(panel_chart(grid[1:2], grid, grid[0], "f1", "gapr", most=10, top=0.5))
    best = next(line for line in root.iter("polyline") if line.get("class") == "line method")
    assert len(best.get("points").split()) == 3
    rings = [ring for ring in root.iter("circle") if ring.get("class") == "ring"]
    assert [float(ring.get("cx")) for ring in rings] == [pytest.approx(30 + 222 * 3 / 10, abs=0.06)]


def test_axes_end_above_the_highest_point():
    assert highest([], "f1") == 0.1
    assert highest([{"f1": 0.31}], "f1") == 0.4
    assert highest([{"f1": 1.0}], "f1") == 1.0


def test_nothing_is_drawn_without_lists():
    assert overview_chart([], [], "f1", "Macro-F1") == ""


def test_the_table_has_a_line_per_method_within_its_width(fitted):
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(render_table(fitted))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert any("w/t/l" in line and "tokens" in line for line in lines)  # the widest table, whole
    text = out.getvalue()
    assert "toy · dense" in text
    for setting in {row["setting"] for cell in fitted["cells"] for row in cell["methods"]}:
        assert any(line.strip().startswith(setting.split()[0]) for line in lines)
    assert "…" not in text


def test_rows_hold_the_figures(fitted):
    rows = pa.Table.from_pylist(list(method_rows(fitted)), schema=METHOD_ROWS).to_pylist()
    assert len(rows) == 8
    method = fitted["cells"][1]["methods"][1]
    row = rows[5]
    assert (row["ranker"], row["setting"]) == ("dense", method["setting"])
    assert row["recall_low"] == method["recall"]["low"]
    assert row["f1_difference"] == method["against"]["f1"]["difference"]["mean"]
    assert row["complete_losses"] == method["against"]["complete"]["lower"]
    assert row["tokens_lists"] == method["tokens"]["n"]


def test_sentences():
    cell = {
        "coverage": {
            "lists": 10,
            "scored": 6,
            "missing": 2,
            "unjudged": 1,
            "no_gold": 3,
            "duplicates": 4,
            "reordered": 5,
        },
        "lists": 6,
        "questions": 3,
        "length": {"mean": 30.0},
        "gold_per_list": 2.5,
    }
    assert list(coverage_notes(cell)) == [
        "6 lists of 3 questions scored, 30 documents long and with 2.50 gold documents on average",
        "left out, no list: 2 of 8 queries with gold",
        "left out, query without judgements: 1 of 10 lists",
        "left out, no relevant document: 3 queries",
        "left out, no gold left to find: 3 of 10 lists",
        "documents that came twice in their list, kept at the better place: 4",
        "lists that were not in order of score in the file, sorted: 5",
    ]
    assert [microseconds(t) for t in (None, 3.25e-6, 0.047)] == ["–", "3.2 µs", "47.0 ms"]
    plain = {"fit": None, "depth": None, "baseline": "fixed", "cells": [], "overlap": 0}
    assert heading(plain) == [("lists", "as given"), ("baseline", "fixed"), ("parameters", "defaults and as set")]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [390, 1200])
def test_in_a_browser_nothing_is_wider_than_the_screen_and_no_name_is_executed(fitted, tmp_path, width):
    (tmp_path / "page.html").write_text(render_page(fitted))
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe src="page.html" width="{width}" height="800"></iframe><script>onload = () => {{'
        "const page = frames[0].document; document.body.dataset.wide = page.documentElement.scrollWidth;"
        "document.body.dataset.title = page.title;"
        'document.body.dataset.panels = page.querySelectorAll(".panel").length }</script>'
    )
    dom = dump_dom(f"file://{frame}", tmp_path / "profile").stdout
    assert int(re.search(r'data-wide="(\d+)"', dom)[1]) <= width
    assert 'data-title="Ranked-list truncation' in dom
    assert 'data-panels="16"' in dom
