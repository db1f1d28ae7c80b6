"""`stopgap calibrate` and `stopgap replay`: a threshold is chosen on some questions and held against others."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from recorded_run import experiment, recorded, traces, write_run

from engine.errors import ConfigError, DataError
from engine.stopping.policy_file import read_policy
from engine.stopping.states import states_of, write_states
from jobs.calibrate import Request as Calibration
from jobs.calibrate import calibrate, calibrated
from jobs.replay import Request, replay, replay_run

FLOOR = Calibration("precision_floor", floor=0.9, min_count=5)


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "full")


def calibrated_file(tmp_path, run, *options):
    path = tmp_path / "policy.json"
    arguments = [run, "--rule", "precision_floor", "--min-count", "5", "--out", str(path), *options]
    done = CliRunner().invoke(calibrate, arguments)
    assert done.exit_code == 0, done.output
    return str(path), done.output


def test_a_policy_is_calibrated_on_half_and_shown_on_the_other(tmp_path, run):
    path, output = calibrated_file(tmp_path, run)
    policy, _ = read_policy(path)
    assert (policy.calibration.questions, policy.calibration.source) == (30, "full")
    assert policy.judge.model == "scripted"
    assert policy.truth == "probe"
    assert "left out: 30 questions, used for calibration" in output
    assert "30 questions, 60 states before a search" in output
    assert f"threshold: {policy.threshold:.6g}" in output
    # The judge of these questions is right: what stops is safe.
    assert "No promise beyond the calibration states" in policy.guarantee
    assert "(precision 100.0 %" in policy.guarantee


def test_a_replay_on_the_calibrated_questions_must_be_asked_for_and_leaves_them_out(tmp_path, run):
    path, _ = calibrated_file(tmp_path, run)
    with pytest.raises(DataError, match=r"was calibrated on 30 of these 60 questions.*--held-out"):
        replay_run(run, Request(files=[path]))
    name, figures = replay_run(run, Request(files=[path], policies="fixed:1", held_out=True, resamples=50))
    assert (name, figures["questions"]) == ("full", 30)
    assert set(figures["excluded"].values()) == {f"{path} was calibrated on it"}
    native, judged, _ = figures["policies"]
    assert judged["policy"].startswith("judge:")
    assert judged["stops"]["unsafe"] == 0
    assert judged["em"]["mean"] == native["em"]["mean"]
    other = write_run(tmp_path / "other", [recorded("n", "Another?", "011", 1, [0.0, 3.0])])
    assert replay_run(other, Request(files=[path], resamples=50))[1]["questions"] == 1
    half = [t for t in traces() if t.question.id not in figures["excluded"]]
    assert replay_run(write_run(tmp_path / "half", half), Request(files=[path], resamples=50))[1]["questions"] == 30
    rest = [t for t in traces() if t.question.id in figures["excluded"]]
    with pytest.raises(DataError, match="on every one of these questions"):
        replay_run(write_run(tmp_path / "rest", rest), Request(files=[path], held_out=True))


def test_the_same_text_on_both_sides_is_a_leak(tmp_path, run):
    twin = write_run(tmp_path / "twin", [recorded("other", "what is  NUMBER 7", "01", 1, [1.0])])
    with pytest.raises(DataError, match=r"the same text under two ids \(q7 = other\)"):
        calibrated(run, Calibration("precision_floor", evaluation=twin))
    with pytest.raises(DataError, match="on both sides"):
        calibrated(run, Calibration("precision_floor", evaluation=run))


def test_other_questions_can_be_evaluated_on(tmp_path, run):
    dev = write_run(tmp_path / "dev", [recorded(f"d{i}", f"Dev {i}?", "011", 1, [0.0, 9.0]) for i in range(4)])
    made = calibrated(run, Calibration("certified", risk="marginal", alpha=0.2, evaluation=dev))
    assert made.policy.calibration.questions == 60
    assert made.held_out.table.questions == 4
    assert made.policy.guarantee.startswith("Stop at scores from")
    other = write_run(tmp_path / "other", config=experiment("other", judge={"field_chars": 10}))
    with pytest.raises(ConfigError, match="full and other were not scored by one judge: its judge has prompt"):
        calibrated(run, Calibration("certified", evaluation=other))


def test_never_to_stop_is_an_answer(tmp_path, run):
    arguments = [run, "--rule", "certified", "--alpha", "0.01", "--out", str(tmp_path / "p.json")]
    done = CliRunner().invoke(calibrate, arguments)
    assert done.exit_code == 0, done.output
    assert "threshold: never stop" in done.output
    policy, _ = read_policy(tmp_path / "p.json")
    assert policy.threshold is None
    assert policy.guarantee.startswith("Never stop")
    figures = replay_run(run, Request(files=[str(tmp_path / "p.json")], held_out=True, resamples=50))[1]
    assert figures["policies"][1]["stops"]["stops"] == 0


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_a_probability_can_be_fitted_beside(tmp_path, run, method):
    path, output = calibrated_file(tmp_path, run, "--probability", method)
    policy, _ = read_policy(path)
    assert policy.probability.method == method
    # No score tells the two kinds of question apart better than its sign does, so that 1 is sure and -1 is not.
    low, high = policy.probability([-1.0, 3.0])
    assert low < 0.1 < 0.9 < high
    assert f"probability ({method}): Brier " in output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 0.1}, "--alpha is no setting of the rule precision_floor"),
        ({"floor": 1.5}, "--floor: input should be less than or equal to 1"),
        ({"share": 1.0}, "--share must be between 0 and 1"),
        ({"share": 0.5, "evaluation": "x"}, "set one of them"),
    ],
)
def test_settings_that_do_not_fit(run, changes, message):
    with pytest.raises(ConfigError, match=message):
        calibrated(run, Calibration("precision_floor", **changes))


def test_states_without_a_judge_or_a_score_calibrate_nothing(tmp_path, run):
    table = tmp_path / "states.parquet"
    write_states((state for trace in traces() for state in states_of(trace)), table)
    with pytest.raises(ConfigError, match="does not say whose scores it holds; name a run or its YAML with --judge"):
        calibrated(str(table), FLOOR)
    made = calibrated(str(table), Calibration("precision_floor", judge_of=run))
    assert made.policy.judge == calibrated(run, FLOOR).policy.judge
    mute = write_run(tmp_path / "mute", [recorded(f"m{i}", f"M {i}?", "01", 1, []) for i in range(9)])
    with pytest.raises(DataError, match="no state before a search has a judge score"):
        calibrated(mute, FLOOR)


def test_a_policy_of_another_judge_is_not_replayed(tmp_path, run):
    path, _ = calibrated_file(tmp_path, run)
    other = write_run(tmp_path / "other", config=experiment("other", judge={"field_chars": 10}))
    with pytest.raises(ConfigError, match=r"policy\.json: other cannot use this policy: its judge has prompt"):
        replay_run(other, Request(files=[path], held_out=True))


def test_a_replay_is_shown_and_written(tmp_path, run):
    out, file = tmp_path / "out", tmp_path / "replay.json"
    options = ["--policies", "judge:1.5,repeat,oracle", "--sweep", "3", "--resamples", "50", "--json", str(file)]
    done = CliRunner().invoke(replay, [run, *options, "--out", str(out), "--price", "retrieval=0.5"])
    assert done.exit_code == 0, done.output
    for words in ("judge:1.5", "fixed:1", "every judge threshold", "Net saving per question", "truth probe"):
        assert words in done.output
    figures = json.loads(file.read_text())
    assert [row["policy"] for row in figures["policies"]] == ["native", "judge:1.5", "repeat", "oracle"]
    assert len(figures["sweep"]) == 3
    assert figures["prices"]["retrieval"] == 0.5
    assert figures["prices"]["tokens"]["loop"]["prompt_per_million"] == 1000.0
    assert figures["prices"]["seconds_per_call"] == {"judge": 0.5, "probe": 0.5, "loop": 0.5}
    judged = figures["policies"][1]
    # 20 questions stop after one search of two; the judge looks once where it stops at once, else twice.
    assert (judged["stops"]["stops"], judged["searches"]["total"]) == (20, 100)
    assert judged["spent"]["by_kind"]["judge"]["calls"] == 120
    rows = pq.read_table(out / "outcomes.parquet").to_pylist()
    assert len(rows) == 3 * 60
    assert rows[0] == {
        "policy": "judge:1.5",
        "question_id": "q0",
        "stop": 1,
        "early": True,
        "safe": True,
        "em": 1.0,
        "f1": 1.0,
        "searches": 1,
    }
    assert (rows[1]["stop"], rows[1]["safe"], rows[1]["searches"]) == (None, None, 2)


def test_the_margin_is_the_runs_unless_another_is_asked_for(tmp_path, run):
    strict = write_run(tmp_path / "strict", config=experiment("strict", observe={"full_budget": True, "margin": 0.0}))
    told = [
        replay_run(at, Request(resamples=50, margin=asked))[1]["margin"]
        for at, asked in ((run, None), (strict, None), (strict, 0.1))
    ]
    assert told == [0.02, 0.0, 0.1]


def test_a_live_run_is_held_against_the_replay_question_by_question(tmp_path, run):
    stop = {"policy": {"stop_at": 1.5}, "observe": {"full_budget": False}}
    # At 1.5 every third question stops after one search, right; the others make both searches.
    ended = [ended_at(trace, 1 if i % 3 == 0 else 2) for i, trace in enumerate(traces())]
    live = write_run(tmp_path / "live", ended, config=experiment("live", **stop))
    done = CliRunner().invoke(replay, [run, "--policies", "judge:1.5", "--resamples", "50", "--live", live])
    assert "60 of 60 questions stopped where predicted, 60 of 60 with the same scores too" in done.output
    ended[3] = ended_at(traces()[3], 2)
    other = write_run(tmp_path / "other", ended[:59], config=experiment("other", **stop))
    _, figures = replay_run(run, Request(policies="judge:1.5,oracle", resamples=50, live=other))
    assert figures["live"]["differ"] == [
        {
            "question_id": "q3",
            "predicted": {"searches": 1, "em": 1.0, "f1": 1.0},
            "live": {"searches": 2, "em": 1.0, "f1": 1.0},
        }
    ]
    assert {name: figures["live"][name] for name in ("questions", "missing", "stops_agree", "scores_agree")} == {
        "questions": 59,
        "missing": 1,
        "stops_agree": 58,
        "scores_agree": 58,
    }
    with pytest.raises(ConfigError, match=r"live was run with stop_at 1\.5; replay just that"):
        replay_run(run, Request(policies="judge:2.5", live=live))
    with pytest.raises(ConfigError, match=r"full was run under no policy"):
        replay_run(run, Request(policies="judge:2.5", live=run))


def ended_at(trace, searches):
    """The trace as a run under a policy leaves it, with so many searches made."""
    return replace(trace, turns=tuple(replace(turn, probe_answer=None) for turn in trace.turns[:searches]))


@pytest.mark.parametrize("text", ["judge=1", "retrieval=1/2", "judges=1/2", "loop=a/b", "loop=-1/2", "retrieval=nan"])
def test_a_price_that_cannot_be_read(run, text):
    with pytest.raises(ConfigError, match="must be retrieval=AMOUNT"):
        replay_run(run, Request(prices=[text]))


def test_a_folder_of_several_runs_is_not_one(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        write_states(states_of(traces()[0]), tmp_path / name / "states.parquet")
    with pytest.raises(DataError, match=r"holds the states of 2 runs \(a, b\); name the folder of one"):
        replay_run(str(tmp_path), Request())
