"""The page in a real browser: headless Chromium, offline."""

import html
import re
import shutil
import subprocess
from urllib.parse import quote

import pytest

from engine.report import build_report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")


@pytest.fixture
def dump_dom(tmp_path):
    """(page, fragment) -> the document after its script ran."""

    def dump(page, fragment=""):
        command = [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            f"file://{page}{fragment}",
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

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
