import json

import numpy as np
from click.testing import CliRunner
from recorded_run import recorded, write_run

from jobs.bench.certify import LEVELS, Population, certify
from jobs.states_input import labelled_states, read_one


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


def test_recorded_runs_are_a_population_too(tmp_path):
    one = write_run(tmp_path / "one", [recorded("a", "A?", "010", 1, [0.5, -1.0]), recorded("b", "B?", "11", 0, [2.0])])
    two = write_run(tmp_path / "two", [recorded("c", "C?", "01", 1, [])])
    found = Population.recorded([labelled_states(read_one(run), None, None) for run in (one, two)])
    # The last state of a question has no search left: nothing stops there.
    nan = np.nan
    np.testing.assert_array_equal(found.score, [[0.5, -1.0, nan], [2.0, nan, nan], [nan, nan, nan]])
    np.testing.assert_array_equal(found.safe[:2, 0], [False, True])
    assert found.safe[0, 1]
    np.testing.assert_array_equal(found.native, [True, False, True])
    done = CliRunner().invoke(certify, ["--draws", "4", "--questions", "9", "--states", one, "--states", two])
    assert done.exit_code == 0, done.output
    assert len(done.output.splitlines()) == 1 + 4
