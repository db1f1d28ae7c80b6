"""Policy files for tests that only need one that is read."""

from engine.stopping.policy_file import Calibration, PolicyFile, write_policy
from engine.stopping.rules import PrecisionFloor
from engine.stopping.truth import Truth


def policy_file(judge, path, threshold=1.5) -> str:
    """Writes the policy of a judge and returns its path."""
    made = PolicyFile(
        threshold=threshold,
        rule=PrecisionFloor(),
        guarantee="None.",
        truth=Truth.PROBE,
        judge=judge,
        calibration=Calibration(source="r", questions=1, states=1, excluded={}, digest="a" * 64, texts=""),
        created="now",
    )
    write_policy(made, path)
    return str(path)
