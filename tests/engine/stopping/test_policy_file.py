"""The policy file: what it says, for whom, and what is not one."""

import json
import math

import pytest
from state_rows import PRIMARY, question, repeated, states

from engine.errors import ConfigError, DataError
from engine.stopping.policy_file import (
    Judge,
    PolicyFile,
    calibrated_on,
    calibration_of,
    read_policy,
    write_policy,
)
from engine.stopping.probability import Isotonic
from engine.stopping.rules import Certified, PrecisionFloor
from engine.stopping.truth import Truth

JUDGE = Judge(model="some/judge", revision="abc", adapter=None, prompt="d" * 64)


def policy(**changes):
    found = states(question("a", "010", 1, scores=[0.5, 1.0], text="Who?"), question("b", "01", 1, text="Where?"))
    fields = {
        "threshold": 1.5,
        "rule": PrecisionFloor(floor=0.8),
        "guarantee": "None.",
        "truth": Truth.PROBE,
        "judge": JUDGE,
        "calibration": calibration_of(found, "run"),
        "created": "2026-01-01T00:00:00Z",
    }
    return PolicyFile(**fields | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"threshold": None, "rule": Certified(alpha=0.05)},
        {"probability": Isotonic(scores=(0.0, 1.0), probabilities=(0.1, 0.9))},
    ],
)
def test_a_policy_comes_back_as_it_was_written(tmp_path, changes):
    path = tmp_path / "policy.json"
    write_policy(policy(**changes), path)
    found, digest = read_policy(path)
    assert found == policy(**changes)
    assert found.stop_at == (math.inf if found.threshold is None else 1.5)
    assert len(digest) == 64
    assert [file.name for file in tmp_path.iterdir()] == ["policy.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d | {"treshold": 1}, "treshold: extra inputs"),
        (lambda d: {k: v for k, v in d.items() if k != "judge"}, "judge: field required"),
        (lambda d: d | {"threshold": "1.5"}, "threshold: input should be a valid number"),
        (lambda d: d | {"rule": {"name": "guess"}}, "rule: input tag 'guess'"),
        (
            lambda d: d | {"rule": {"name": "certified", "alpha": 2.0}},
            "rule.certified.alpha: input should be less than 1",
        ),
        (lambda d: d | {"truth": "hope"}, "truth: input should be 'probe'"),
        (lambda d: d | {"kind": "x"}, "kind: input should be 'stopgap stopping policy'"),
        (lambda d: d | {"judge": d["judge"] | {"prompt": "short"}}, "judge.prompt: string should match"),
    ],
)
def test_a_file_that_is_not_a_policy_is_refused_in_one_line(tmp_path, change, message):
    path = tmp_path / "policy.json"
    write_policy(policy(), path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ConfigError, match=rf"policy\.json: {message}") as raised:
        read_policy(path)
    assert "\n" not in str(raised.value)


def test_no_json_and_no_file(tmp_path):
    (tmp_path / "x").write_text("{")
    with pytest.raises(ConfigError, match="the file: invalid JSON"):
        read_policy(tmp_path / "x")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_policy(tmp_path / "y")
    with pytest.raises(DataError, match="cannot be written"):
        write_policy(policy(), tmp_path / "no" / "policy.json")


@pytest.mark.parametrize(
    ("field", "value"), [("model", "other"), ("revision", "def"), ("adapter", "sha256:1"), ("prompt", "e" * 64)]
)
def test_another_judge_is_refused_with_what_differs(field, value):
    policy().require_judge(JUDGE, "here")
    other = JUDGE.model_copy(update={field: value})
    with pytest.raises(
        ConfigError, match=rf"here cannot use this policy: its judge has {field} .*, this one {value[:20]}"
    ):
        policy().require_judge(other, "here")


def test_questions_are_known_again_by_their_text_and_nothing_else_is_told():
    found = policy()
    assert calibrated_on(found, ["who", "WHERE ?", "When?"]).tolist() == [True, True, False]
    assert found.calibration.questions == 2
    assert found.calibration.states == 3
    assert "Who" not in found.model_dump_json()


def test_the_digest_is_of_what_the_rule_saw():
    def digest(**changes):
        columns = {"scores": [0.5, 1.0], "text": "Who?"} | changes
        return calibration_of(states(question("a", changes.pop("probes", "010"), 1, **columns)), "s").digest

    same = calibration_of(states(question("a", "011", 0, scores=[0.5, 1.0], text="Who?")), "other").digest
    assert digest() == same
    assert digest(scores=[0.5, 1.1]) != same
    assert digest(text="Why?") != same


def test_a_rule_chooses_and_says_what_it_promises():
    found = states(*repeated(PRIMARY))
    floor = PrecisionFloor(floor=0.6).choose(found)
    assert floor.threshold == 9.0
    assert floor.guarantee.startswith("No promise beyond the calibration states, where 42 of 69 states")
    none = PrecisionFloor(floor=0.9).choose(found)
    assert none.threshold == 10.0
    assert "no threshold had a precision of 0.9 over 10 states or more" in none.guarantee
    marginal = Certified(risk="marginal", alpha=0.05).choose(found)
    assert marginal.threshold == 9.0
    assert marginal.guarantee.startswith("Stop at scores from 9: marginal risk of at most 0.05 with 90 % confidence")
    loss = Certified(risk="em_loss", alpha=0.05).choose(found)
    assert loss.threshold == 9.0
    assert "69 stops, 6 answers lost and 1 gained" in loss.guarantee
    assert Certified().choose(found).threshold == math.inf


def test_em_loss_needs_probes():
    silver = question("a", "--", 1, scores=[1.0], answer_in_context=[True, True])
    with pytest.raises(DataError, match="EM loss is certified from probe answers, but the truth is answer_in_context"):
        Certified(risk="em_loss").choose(states(silver))
