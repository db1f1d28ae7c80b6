import re
import xml.etree.ElementTree as ET

from engine.report.charts import interval_mark, reach_chart, stop_bars


def test_stop_bars_are_as_long_as_their_questions_are_many():
    markup = stop_bars(
        [
            {"retrievals": 1, "counts": {"sufficient": 6, "error": 2}},
            {"retrievals": 2, "counts": {"budget": 4}},
        ]
    )
    widths = {css: float(width) for css, width in re.findall(r'class="(\w+)" style="width:([\d.]+)%"', markup)}
    assert widths == {"sufficient": 75.0, "error": 25.0, "budget": 50.0}
    assert "judged sufficient: 6" in markup
    ET.fromstring(markup)


def test_stop_bars_of_no_questions():
    assert "<i" not in stop_bars([])


def test_interval_marks_lie_on_their_scale():
    root = ET.fromstring(interval_mark({"mean": 0.5, "low": 0.25, "high": 0.75}))
    whisker = next(line for line in root.iter("line") if line.get("class") == "whisker")
    assert (float(whisker.get("x1")), float(whisker.get("x2"))) == (42.0, 118.0)
    assert float(next(root.iter("circle")).get("cx")) == 80.0
    assert all(line.get("class") != "zero" for line in root.iter("line"))


def test_a_difference_marks_zero():
    root = ET.fromstring(interval_mark({"mean": 0.1, "low": None, "high": None}, -0.2, 0.2))
    classes = [line.get("class") for line in root.iter("line")]
    assert classes == ["rail", "zero"]


def test_a_missing_mean_draws_nothing():
    assert interval_mark({"mean": None, "low": None, "high": None}) == ""


def test_reach_lines_go_through_their_values_and_short_ones_are_held():
    root = ET.fromstring(reach_chart([("a", "run0", [0.0, 0.5]), ("b <&>", "run1", [0.0, 0.25, 1.0])]))
    drawn = {line.get("class"): line.get("points").split() for line in root.iter("polyline")}
    lines = [drawn["line run0"], drawn["line run1"]]
    assert [len(points) for points in lines] == [2, 3]
    heights = [float(point.split(",")[1]) for point in lines[1]]
    assert heights == sorted(heights, reverse=True)
    assert heights[2] == 12.0
    assert len(drawn) == 3
    assert drawn["line held run0"] == [lines[0][1], f"{lines[1][2].split(',')[0]},{lines[0][1].split(',')[1]}"]
    assert "b <&> ends at 100.0 %" in root.get("aria-label")


def test_nothing_to_draw_without_retrievals_or_gold():
    assert reach_chart([("a", "run0", [0.0])]) == ""
    assert reach_chart([("a", "run0", [None, None, None])]) == ""
