"""Methods with parameters: names, overrides, grids and the mistakes one can make."""

import numpy as np
import pytest

from engine.errors import ConfigError
from engine.score.truncation_settings import COST_MATCHED, GRIDS, Setting, make_setting, methods
from engine.truncate import CONFIGS, METHODS, ORACLES

SCORES = np.arange(101.0)


def test_all_methods_and_oracles_are_compared_but_the_baseline():
    names = [chosen.method for chosen in methods(None)]
    assert names == [name for name in (*METHODS, *ORACLES) if name != COST_MATCHED]


@pytest.mark.parametrize("method", [name for name in METHODS if name != COST_MATCHED])
def test_every_method_has_a_grid_of_its_parameters_around_its_default(method):
    (chosen,) = methods([method])
    grid = chosen.grid(SCORES)
    assert len(grid) > 3
    assert len(set(grid)) == len(grid)
    assert set(GRIDS[method]) <= set(CONFIGS[method].model_fields)
    if chosen.setting is not None:
        assert grid[0] == chosen.setting == make_setting(method, {})
        assert chosen.setting.name == method


def test_a_name_tells_what_differs_from_the_defaults():
    assert make_setting("gapr", {"eta": 0.1, "r": 3}).name == "gapr eta=0.1"
    assert make_setting("ratio_threshold", {"k_max": None}).name == "ratio_threshold k_max=None"
    assert Setting("oracle_f1").name == "oracle_f1"
    assert Setting("oracle_f1").parameters == {}


def test_what_the_user_sets_is_not_varied():
    (chosen,) = methods(["gapr"], ["gapr.eta=0.3"])
    assert {setting.parameters["eta"] for setting in chosen.grid(SCORES)} == {0.3}
    assert {setting.parameters["r"] for setting in chosen.grid(SCORES)} >= {1, 3, 8}


def test_a_method_without_a_default_is_compared_once_it_is_set():
    (unset,) = methods(["score_threshold"])
    assert unset.setting is None
    assert unset.reads_scores
    thresholds = [setting.parameters["threshold"] for setting in unset.grid(SCORES)]
    assert thresholds == pytest.approx([5.0 * i for i in range(1, 20)])
    assert unset.grid(np.empty(0)) == ()
    (chosen,) = methods(["score_threshold"], ["score_threshold.threshold=7.5"])
    assert chosen.setting.name == "score_threshold threshold=7.5"
    assert not chosen.reads_scores


def test_an_oracle_has_no_grid():
    (chosen,) = methods(["oracle_f1"])
    assert chosen.grid(SCORES) == (Setting("oracle_f1"),)


@pytest.mark.parametrize(
    ("names", "overrides", "said"),
    [
        (["gaprr"], [], "unknown truncation method 'gaprr' (did you mean 'gapr'?)"),
        (["gapr"], ["fixed.k=3"], "method 'fixed' is not compared"),
        (["gapr"], ["gapr.etaa=3"], "unknown parameter 'gapr.etaa' (did you mean 'eta'?)"),
        (["gapr"], ["gapr.kind=fixed"], "unknown parameter 'gapr.kind'"),
        (["gapr"], ["gapr.eta=3"], "gapr.eta: input should be less than or equal to 1, found 3"),
        (["gapr"], ["gapr=3"], "must look like method.parameter=value"),
        (["gapr"], ["gapr.eta=[1"], "the value is not YAML"),
        (["oracle_f1"], ["oracle_f1.k=1"], "unknown parameter 'oracle_f1.k'; known are none"),
    ],
)
def test_mistakes_are_told_in_one_line(names, overrides, said):
    with pytest.raises(ConfigError) as error:
        methods(names, overrides)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
