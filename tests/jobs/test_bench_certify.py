import json

from click.testing import CliRunner

from jobs.bench.certify import LEVELS, certify


def test_it_prints_a_row_per_rule_and_writes_the_figures(tmp_path):
    file = tmp_path / "figures.json"
    done = CliRunner().invoke(certify, ["--draws", "4", "--questions", "60", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) == 1 + 4 * len(LEVELS)
    figures = json.loads(file.read_text())
    for level in LEVELS:
        assert 0 < figures[f"base_rate_{level}"] < 1
        for rule in ("accepted", "marginal", "em_loss", "floor"):
            rate, bound = figures[f"{rule}_violated_{level}"], figures[f"{rule}_violated_upper_{level}"]
            assert 0 <= rate <= bound <= 1
