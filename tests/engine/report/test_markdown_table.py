from engine.report import build_report


def test_one_run(make_run, make_trace, tmp_path):
    run = make_run("base", [make_trace("q1"), make_trace("q2", answer="Rome"), make_trace("q3", error=True)])
    text = build_report([run], tmp_path, resamples=100).table.read_text()
    lines = text.splitlines()
    assert lines[2] == "|  | base |"
    assert "| Exact match, % | 50.0 [9.5, 90.5] (2/3) |" in lines
    assert "| Retrievals per question | 1.67 |" in lines
    assert "| Cost per question | not priced |" in lines
    assert "| Errors | 1 / 3 |" in lines


def test_a_comparison_reads_as_sentences(make_run, make_trace, tmp_path):
    base = make_run("a|b", ["q1", "q2"])
    other = make_run("other", [make_trace("q1", answer="Rome"), make_trace("q2", answer="Oslo")])
    text = build_report([base, other], tmp_path, resamples=100).table.read_text()
    assert "|  | a\\|b | other |" in text
    assert "**other against a\\|b**" in text
    assert "- 2 of 2 answers changed" in text
    changed = "difference −100.0 points, 95 % CI [−100.0, −100.0] excludes 0 (0 higher, 0 equal, 2 lower)"
    assert f"- Exact match: {changed}" in text
    assert "- Retrievals per question: difference 0, 95 % CI [0, 0] contains 0" in text


def test_scores_without_any_truth_are_left_out(make_run, make_trace, tmp_path):
    run = make_run("base", [make_trace("q1", gold=())])
    text = build_report([run], tmp_path, resamples=100).table.read_text()
    assert "Exact match" not in text
    assert "Gold passages read" in text
