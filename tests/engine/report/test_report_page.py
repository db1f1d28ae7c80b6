import json
import re

import pytest

from engine.errors import RunError
from engine.report import build_report
from engine.report.html import embed
from engine.schema import METRICS


def test_one_run_writes_page_metrics_and_table(make_run, tmp_path):
    report = build_report([make_run()], tmp_path / "new" / "folder", resamples=100)
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {
        "report.html",
        "metrics.json",
        "report.md",
        "questions.parquet",
    }
    stored = json.loads(report.metrics.read_text())
    assert stored == report.figures
    assert set(stored["metrics"]) == set(METRICS)
    page = report.html.read_text()
    assert "Exact match" in page
    assert "judged sufficient" in page
    assert "All 4 questions." in page
    assert "versions.ray" in page
    assert "not priced" in page


def test_several_runs_are_compared_with_the_first(make_run, make_trace, tmp_path):
    base = make_run("base")
    noisy = make_run("noisy", [make_trace(f"q{i}", answer="Rome" if i == 2 else "Lund") for i in range(1, 5)], seed=1)
    report = build_report([base, noisy], tmp_path, resamples=500)
    assert report.figures["baseline"] == "base"
    assert set(report.figures["runs"]) == {"base", "noisy"}
    [comparison] = report.figures["comparisons"]
    assert comparison["answers_changed"] == {"questions": 1, "of": 4}
    page = report.html.read_text()
    assert "difference −25.0 points, 95 % CI [−75.0, 0.0] contains 0" in page
    assert "1 of 4 answers changed" in page
    assert "<code>seed</code>" in page


def test_a_run_can_be_compared_with_a_rerun_of_the_same_name(make_run, tmp_path):
    report = build_report([make_run("same"), make_run("same")], tmp_path, resamples=50)
    assert set(report.figures["runs"]) == {"same", "same (2)"}
    assert report.figures["comparisons"][0]["answers_changed"]["questions"] == 0


def test_partial_overlap_needs_consent_and_writes_nothing_without(make_run, tmp_path):
    runs = [make_run("base", ["q1", "q2"]), make_run("other", ["q2", "q3"])]
    with pytest.raises(RunError, match="1 are shared"):
        build_report(runs, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    page = build_report(runs, tmp_path, allow_partial=True, resamples=50).html.read_text()
    assert "1 shared questions; left out: 1 asked only in base, 1 only in other" in page


def test_the_same_runs_give_the_same_files(make_run, tmp_path):
    first = build_report([make_run()], tmp_path / "a", resamples=100)
    second = build_report([make_run()], tmp_path / "b", resamples=100)
    for name in ("html", "metrics", "table", "questions"):
        assert getattr(first, name).read_bytes() == getattr(second, name).read_bytes()


def test_a_report_replaces_an_older_one(make_run, tmp_path):
    build_report([make_run("old")], tmp_path, resamples=50)
    assert "<h1>new</h1>" in build_report([make_run("new")], tmp_path, resamples=50).html.read_text()
    assert len(list(tmp_path.iterdir())) == 4


def test_no_runs(tmp_path):
    with pytest.raises(RunError, match="at least one run"):
        build_report([], tmp_path)


def test_a_run_without_rows_or_timings_still_has_a_page(make_run, tmp_path):
    empty = make_run("empty", [])
    page = build_report([empty], tmp_path, resamples=50).html.read_text()
    assert "The run has no questions." in page


def test_an_unfinished_run_says_so(make_run, tmp_path):
    run = make_run("cut", ["q1", "q2"])
    object.__setattr__(run, "manifest", {"questions": {"count": 5}})
    page = build_report([run], tmp_path, resamples=50).html.read_text()
    assert "The run is not finished: 2 of 5 planned questions are in." in page


def test_runs_without_judge_gold_or_prices(make_run, make_trace, tmp_path):
    run = make_run("plain", [make_trace("q1", gold=())], loop={"kind": "single"})
    assert "Exact match" in build_report([run], tmp_path, resamples=50).html.read_text()


def test_priced_runs_show_money(make_run, tmp_path):
    cost = {"models": {"main": {"prompt_per_million": 100.0}}, "per_retrieval": 0.01, "currency": "EUR"}
    page = build_report([make_run(cost=cost)], tmp_path, resamples=50).html.read_text()
    # Four questions: 4 * 350 prompt tokens at 100 per million, 8 retrievals at a cent.
    assert "0.220 EUR" in page
    assert "not priced" not in page


def test_traces_are_capped_over_all_runs(make_run, tmp_path):
    ids = [f"q{i}" for i in range(20)]
    page = build_report([make_run("a", ids), make_run("b", ids)], tmp_path, max_traces=10, resamples=50)
    data = _data(page.html.read_text())
    assert len(data["questions"]) == 5
    assert "5 of 20 questions: all 0 with an error, the others a sample with seed 0." in page.html.read_text()
    assert page.figures["runs"]["a"]["questions"]["asked"] == 20


NASTY = '</script><script>document.title="pwned"</script><!--<img src=x onerror=alert(1)>"\'&amp;\u2028{{ 7*7 }}'


def test_no_text_of_a_question_becomes_markup(make_run, make_trace, tmp_path):
    run = make_run("base", [make_trace(NASTY, NASTY, NASTY, (NASTY,))])
    page = build_report([run], tmp_path, resamples=50).html.read_text()
    assert "<img" not in page
    assert 'title="pwned"' not in page
    assert page.count("</script>") == 3
    [question] = _data(page)["questions"]
    assert question["q"] == question["id"] == question["runs"][0]["a"] == NASTY


def test_no_text_of_a_run_becomes_markup(make_run, make_trace, tmp_path):
    base = make_run("<b>bold</b>", [make_trace("q1")])
    hostile = make_run("<i>run</i>", [make_trace("q1", error=True)])
    object.__setattr__(hostile, "manifest", {"<u>key</u>": "<s>value</s>"})
    page = build_report([base, hostile], tmp_path, resamples=50).html.read_text()
    for tag in ("<b>bold", "<i>run", "<u>", "<s>"):
        assert tag not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page


def test_the_page_loads_nothing(make_run, tmp_path):
    page = build_report([make_run()], tmp_path, resamples=50).html.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", page)
    assert not re.search(r"@import|url\(|<link|<iframe|https?://", page)
    assert "default-src 'none'" in page


def test_embedded_json_survives_every_character():
    value = {"text": "".join(map(chr, range(0x20, 0x3000))) + "\u2028\u2029</script>😀"}
    text = embed(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def _data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
