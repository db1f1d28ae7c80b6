import json
from io import StringIO

from rich.console import Console

from engine.report import render_trace, trace_text
from engine.rows import trace_to_row


def shown(trace, **options):
    return trace_text(trace_to_row(trace), **options)


def test_the_whole_trace_reads_in_eighty_columns(make_trace):
    text = shown(make_trace())
    assert max(map(len, text.splitlines())) <= 80
    order = [
        "Where was the builder born?",
        "gold      Lund",
        "support   Jupiter Hotel, sentence 0",
        "turn 0   gold passages read so far: 0 of 2",
        "verdict   insufficient  (rule)",
        "query     hotel on the river  (question)",
        "*  1    18.00 Jupiter Hotel  d1",
        "---- cut: 2 of 6 read -----",
        "1 more, 1 of them gold",
        "evidence  * Jupiter Hotel, sentence 0",
        "The hotel was built by Ada Brook.",
        "turn 1   gold passages read so far: 1 of 2",
        "verdict   insufficient  score -2.50  p 0.076  (repaired)",
        "gap       Ada Brook -> birthplace: where she was born  (bridge_entity)",
        "query     Ada Brook birthplace  (gap)",
        "1 hits dropped as already seen",
        "She was born in Lund.",
        "turn 2",
        "verdict   sufficient  score +3.00  p 0.953",
        "stopped   judged sufficient, 2 retrievals",
        "answer    Lund",
        "Exact match        100.0",
        "judge        2 calls, 200 + 20 tokens",
    ]
    places = [text.find(part) for part in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)


def test_a_narrow_terminal_loses_nothing(make_trace):
    text = shown(make_trace(text="Where was the builder of the hotel on the river born, and when?"), width=40)
    assert max(map(len, text.splitlines())) <= 40
    assert "builder of the hotel" in " ".join(text.split())


def test_an_error_row_shows_its_error(make_trace):
    text = shown(make_trace(error=True))
    assert "error     CallTimeout: no reply within 60 s" in text
    assert "scores, % not scored" in text
    assert "answer    none" in text


def test_hits_below_the_cut_can_all_be_shown(make_trace):
    text = shown(make_trace(), below_cut=30)
    assert "*  6     8.00 Ada Brook  d2" in text
    assert " more" not in text


def test_recorded_text_cannot_drive_the_terminal_or_the_markup(make_trace):
    text = shown(make_trace(text="[bold]x[/bold] \x1b[31mred\x07 a\nb \x9b2J", answer="[link=x]y"))
    assert "[bold]x[/bold] ?[31mred? a b ?2J" in text
    assert "\x1b" not in text
    assert "[link=x]y" in text


def test_colours_only_for_a_terminal(make_trace):
    row = trace_to_row(make_trace())
    plain, coloured = StringIO(), StringIO()
    Console(file=plain, width=80).print(render_trace(row))
    Console(file=coloured, width=80, force_terminal=True, color_system="standard").print(render_trace(row))
    assert "\x1b[" not in plain.getvalue()
    assert "\x1b[" in coloured.getvalue()


def test_an_unreadable_verdict_shows_the_reply(make_trace):
    row = trace_to_row(make_trace())
    row["turns"][1]["verdict"] |= {"parse_status": "truncated", "raw": '{"sufficient": fal', "gaps": []}
    assert '{"sufficient": fal' in trace_text(row)


def test_a_bare_row_without_gold_or_turns(make_trace):
    row = trace_to_row(make_trace())
    row |= {"golden_answers": [], "supporting": [], "turns": [], "usage": [], "metadata": json.dumps({})}
    assert "gold      none given" in trace_text(row)


def test_a_watched_turn_shows_its_probe_what_comes_next_and_what_was_not_run(make_trace):
    row = trace_to_row(make_trace())
    row["turns"][1] |= {"probe_answer": "Rome", "action": "search"}
    row["turns"][2] |= {"probe_answer": "", "action": "invalid", "unexecuted": "Ada Brook family"}
    _, second, third = trace_text(row).split("turn ")[1:]
    parts = ["verdict", "probe     Rome", "next      search", "query     Ada Brook birthplace"]
    places = [second.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    for part in ("probe     (empty)", "next      neither a search nor an answer", "not run   Ada Brook family"):
        assert part in third
