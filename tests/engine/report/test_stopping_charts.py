import re
import xml.etree.ElementTree as ET

import pytest

from engine.report.plot import Axes, label, ticks
from engine.report.stopping_charts import frontier_chart, reliability_chart, risk_chart, thinned


def interval(mean, low=None, high=None, n=40):
    return {"mean": mean, "low": low, "high": high, "n": n, "asked": 40}


def policy(name, em, searches):
    return {"policy": name, "em": interval(em), "searches": interval(searches)}


def figures(sweep=(), policies=(("native", 0.5, 3.0), ("oracle", 0.6, 1.5)), budgets=((0, 0.2, 0.0), (1, 0.4, 1.0))):
    return {
        "audit": {
            "questions": 40,
            "fixed_budgets": [{"k": k, "em": interval(em), "searches": s} for k, em, s in budgets],
        },
        "replay": {"policies": [policy(*row) for row in policies]},
        "sweep": list(sweep),
    }


def swept(threshold, stops, unsafe, em=0.5, searches=2.0):
    risk = interval(unsafe / stops, max(0.0, unsafe / stops - 0.1), min(1.0, unsafe / stops + 0.1))
    return {
        "threshold": threshold,
        "stops": stops,
        "unsafe": unsafe,
        "accepted_risk": risk,
        "em": em,
        "searches": searches,
    }


def marks(root, css):
    return [circle for circle in root.iter("circle") if circle.get("class") == css]


def path(root, css):
    line = next(line for line in root.iter("polyline") if line.get("class") == css)
    return [tuple(map(float, point.split(","))) for point in line.get("points").split()]


def test_ticks_are_round_and_within():
    assert ticks(0, 3, 8, 1) == [0, 1, 2, 3]
    assert ticks(0, 40, 8, 1) == [0, 5, 10, 15, 20, 25, 30, 35, 40]
    assert ticks(0.1, 0.6, 6, 0.01) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def test_the_frontier_goes_from_native_over_the_thresholds_and_marks_every_policy():
    root = ET.fromstring(frontier_chart(figures([swept(9.0, 4, 1, 0.45, 2.0), swept(-1.5, 20, 9, 0.3, 1.0)]), "em"))
    axes = Axes((0.0, 3.0), (0.2, 0.7))  # tenths around 0.2 .. 0.6, with room for a label
    expected = [axes.at(point) for point in ((3.0, 0.5), (2.0, 0.45), (1.0, 0.3))]
    assert path(root, "line judged") == [pytest.approx(point, abs=0.06) for point in expected]
    assert path(root, "line fixed") == [pytest.approx(axes.at(p), abs=0.06) for p in ((0.0, 0.2), (1.0, 0.4))]
    [oracle] = marks(root, "policy oracle")
    assert (float(oracle.get("cx")), float(oracle.get("cy"))) == pytest.approx(axes.at((1.5, 0.6)), abs=0.06)
    assert oracle.find("title").text == "oracle: 60.0 % at 1.50 searches"
    titles = [dot.find("title").text for dot in marks(root, "dot judged")]
    assert titles[1] == "judge:−1.5: 30.0 % at 1 searches, 20 stopped early"
    assert "native 50.0 % at 3 searches" in root.get("aria-label")


def test_scores_that_are_not_known_are_not_drawn():
    states = figures([swept(1.0, 4, 1, None)], [("native", 0.5, 3.0), ("oracle", None, 1.5)], [(0, None, 0.0)])
    assert frontier_chart(states, "em") == ""
    partial = figures()
    partial["replay"]["policies"][1]["em"]["n"] = 39
    assert marks(ET.fromstring(frontier_chart(partial, "em")), "policy oracle") == []


def test_risk_stands_over_coverage_with_its_band_and_counts():
    root = ET.fromstring(risk_chart(figures([swept(2.0, 10, 1), swept(1.0, 30, 15)])))
    axes = Axes((0.0, 1.0), (0.0, 1.0), height=284.0, right=24.0, bottom=50.0)
    expected = [axes.at(point) for point in ((0.25, 0.1), (0.75, 0.5))]
    assert path(root, "line judged") == [pytest.approx(point, abs=0.06) for point in expected]
    band = next(root.iter("polygon")).get("points").split()
    assert [tuple(map(float, point.split(","))) for point in band] == [
        pytest.approx(axes.at(point), abs=0.06) for point in ((0.25, 0.0), (0.75, 0.4), (0.75, 0.6), (0.25, 0.2))
    ]
    words = [text.text for text in root.iter("text")]
    assert [text for text in words if text.startswith("(")] == ["(0)", "(10)", "(20)", "(30)", "(40)"]
    assert marks(root, "dot judged")[1].find("title").text == (
        "judge:1: 30 of 40 stopped, 15 not safe, risk 50.0 % [40.0, 60.0]"
    )


def test_nothing_is_drawn_where_nothing_stops_or_was_judged():
    assert risk_chart(figures()) == ""
    assert reliability_chart([{"n": 0, "stated": None, "observed": None}]) == ""


def test_reliability_dots_have_the_area_of_their_states():
    bins = [
        {"n": 25, "stated": 0.1, "observed": 0.2},
        {"n": 0, "stated": None, "observed": None},
        {"n": 100, "stated": 0.9, "observed": 0.5},
    ]
    root = ET.fromstring(reliability_chart(bins))
    small, large = marks(root, "dot bin")
    assert (float(small.get("r")), float(large.get("r"))) == (5.5, 11.0)
    assert large.find("title").text == "stated 90.0 %, safe 50.0 % of 100 states"
    assert path(root, "line ideal") == [(40.0, 234.0), (446.0, 12.0)]


def test_thinned_rows_keep_both_ends():
    assert thinned(range(5), 5) == [0, 1, 2, 3, 4]
    assert thinned(range(101), 5) == [0, 25, 50, 75, 100]


def test_a_label_at_the_edge_stays_within_the_plot():
    axes = Axes((0.0, 1.0), (0.0, 1.0))
    middles = [float(re.search(r' x="([\d.]+)"', label(axes, (x, 0.5), "native"))[1]) for x in (0.0, 0.5, 1.0)]
    assert middles[1] == pytest.approx(axes.at((0.5, 0.5))[0], abs=0.1)
    assert middles[2] + 6 * 3.2 <= axes.width
    assert middles[0] >= 6 * 3.2
