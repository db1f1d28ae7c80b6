"""The page in a real browser: headless Chromium, offline."""

import html
import re
from dataclasses import replace
from urllib.parse import quote

import browser
import pytest

from engine.report import build_report
from engine.score.answer import exact_match

pytestmark = pytest.mark.skipif(browser.BROWSER is None, reason="no Chromium on this machine")


@pytest.fixture
def dump_dom(tmp_path):
    """(page, fragment) -> the document after its script ran, which may write nothing to the console."""

    def dump(page, fragment=""):
        options = ("--enable-logging=stderr", "--virtual-time-budget=3000")
        done = browser.dump_dom(f"file://{page}{fragment}", tmp_path / "profile", *options)
        assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
        return done.stdout

    return dump


def shown(dom):
    """The text of the question list, without tags."""
    body = re.search(r'<div id="list">(.*)</div>\s*<button id="more"', dom, re.DOTALL)[1]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


NASTY = '</script><script>document.title="pwned"</script><img src=x onerror=\'document.title="pwned"\'>'


def test_questions_and_traces_are_drawn_by_the_script(make_run, make_trace, tmp_path, dump_dom):
    traces = [
        make_trace("q1"),
        make_trace("q2", "Who built the old mill?", answer="Rome"),
        make_trace("q/3 ü", NASTY, NASTY, (NASTY,)),
        make_trace("q4", error=True),
    ]
    page = build_report([make_run("base", traces)], tmp_path, resamples=50).html

    listed = shown(dump_dom(page))
    for text in ("Where was the builder born?", "Who built the old mill?", NASTY, "CallTimeout"):
        assert text in listed
    assert "She was born in Lund." not in listed, "traces are drawn only when opened"

    opened = dump_dom(page, "#question=" + quote("q/3 ü"))
    assert "<title>base · Stopgap report</title>" in opened
    assert "<img" not in opened
    text = shown(opened)
    assert "Where was the builder born?" not in text, "the link filters the list"
    for part in (
        "Turn 2",
        "insufficient",
        "Ada Brook → birthplace",
        "cut: 2 of 6 read",
        "show 1 more, 1 of them gold",
        "Jupiter Hotel  · gold",
        "She was born in Lund.",
        "judged sufficient, 2 retrievals",
        "judge 2 calls, 200 + 20 tokens",
    ):
        assert " ".join(part.split()) in " ".join(text.split())


def test_two_runs_side_by_side(make_run, make_trace, tmp_path, dump_dom):
    base = make_run("base", ["q1", "q2"])
    other = make_run("other", [make_trace("q1", answer="Rome"), make_trace("q2", error=True)])
    page = build_report([base, other], tmp_path, resamples=50).html
    text = " ".join(shown(dump_dom(page)).split())
    assert "✓ base: Lund ✗ other: Rome gold: Lund" in text
    assert "✓ base: Lund ! other: CallTimeout gold: Lund" in text


# A page in a frame of a phone's width: measured, filtered, and its first question opened.
PHONE = """
<iframe src="{page}" width="390" height="800"></iframe>
<pre id="opened"></pre>
<script>
onload = () => {{
  const page = frames[0].document, told = document.body.dataset;
  const wide = () => page.documentElement.scrollWidth;
  told.wide = wide();
  told.plots = page.querySelectorAll("svg.plot").length;
  const outcome = page.getElementById("outcome");
  outcome.value = "late";
  outcome.dispatchEvent(new Event("input", {{ bubbles: true }}));
  told.late = page.getElementById("shown").textContent;
  const first = page.querySelector("details.q");
  first.addEventListener("toggle", () => {{
    for (const fold of first.querySelectorAll("details")) fold.open = true;
    document.getElementById("opened").textContent = first.innerText;
    told.wideopen = wide();
  }});
  first.open = true;
}};
</script>
"""


def test_a_run_with_states_fits_a_phone_and_its_questions_show_what_was_probed(recorded, tmp_path, dump_dom):
    page = build_report([recorded], tmp_path, resamples=50).html
    (tmp_path / "phone.html").write_text(PHONE.format(page=page.name))
    dom = dump_dom(tmp_path / "phone.html")
    told = dict(re.findall(r'data-(\w+)="([^"]*)"', dom))
    assert max(int(told["wide"]), int(told["wideopen"])) <= 390
    assert int(told["plots"]) == 4, "two frontiers, risk and reliability; no question has gold passages"
    rows = [row for batch in recorded.batches() for row in batch.to_pylist()]
    late = [row for row in rows if row["metrics"]["em"] == 1.0 and any(map(probed_right(row), row["turns"]))]
    assert 0 < len(late) < len(rows)
    assert told["late"] == f"{len(late)} of 24 questions"
    opened = " ".join(html.unescape(re.search(r'<pre id="opened">(.*?)</pre>', dom, re.DOTALL)[1]).split())
    first = late[0]
    for part in (
        first["question"],
        f"score {first['turns'][0]['verdict']['score']:+.2f}".replace("-", "−"),
        f"probe answer {'✓' if probed_right(first)(first['turns'][0]) else '✗'} {first['turns'][0]['probe_answer']}",
        "next search",
        f"cut: {first['turns'][0]['kept']} of {len(first['turns'][0]['hits'])} read",
        first["answer_raw"],
    ):
        assert " ".join(part.split()) in opened


def probed_right(row):
    return lambda turn: turn["action"] == "search" and exact_match(turn["probe_answer"], row["golden_answers"]) == 1.0


def test_queries_that_were_not_run_and_transcripts_are_shown_folded(make_run, make_trace, tmp_path, dump_dom):
    made = make_trace("q1")
    last = replace(made.turns[2], unexecuted="one search too many")
    trace = replace(made, turns=(*made.turns[:2], last), answer_raw="<search> the whole story </search>")
    loop = {"kind": "search_r1", "observations": "user_turn"}
    page = build_report([make_run("r1", [trace], loop=loop, truncate={"kind": "fixed"})], tmp_path, resamples=50).html
    dom = dump_dom(page, "#question=q1")
    text = " ".join(shown(dom).split())
    assert "not searched for one search too many" in text
    assert "the whole transcript <search> the whole story </search>" in text
    assert not re.search(r'<details[^>]* open=""[^>]*><summary>the whole transcript', dom)
