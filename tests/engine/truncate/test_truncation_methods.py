"""What holds for every method."""

import subprocess
import sys
import typing
import warnings

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from truncation_lists import NEEDED, lists_as_read, random_lists

from engine.truncate import CONFIGS, METHODS, ORACLES, TruncateConfig, keep, truncate

SAMPLE = 3_000


def config(name):
    return CONFIGS[name](**NEEDED.get(name, {}))


def test_the_tables_agree():
    assert set(CONFIGS) == set(METHODS)
    assert set(METHODS) & set(ORACLES) == set()
    assert {model.model_fields["kind"].default for model in CONFIGS.values()} == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_function_takes_what_its_config_holds(name):
    hints = typing.get_type_hints(METHODS[name])
    assert set(hints) - {"scores", "lengths", "return"} == set(CONFIGS[name].model_fields) - {"kind"}
    defaults = METHODS[name].__kwdefaults__ or {}
    fields = CONFIGS[name].model_fields
    assert defaults == {key: fields[key].default for key in fields if key != "kind" and not fields[key].is_required()}


@pytest.mark.parametrize("name", METHODS)
def test_a_config_is_chosen_by_its_kind_and_cannot_change(name):
    given = {"kind": name, **NEEDED.get(name, {})}
    chosen = TypeAdapter(TruncateConfig).validate_python(given)
    assert chosen == config(name)
    with pytest.raises(ValidationError):
        chosen.kind = "fixed"
    with pytest.raises(ValidationError):
        TypeAdapter(TruncateConfig).validate_python({**given, "nonsense": 1})


@pytest.mark.parametrize("name", METHODS)
def test_any_list_gets_a_count_within_it(name):
    scores, lengths = (part[:SAMPLE] for part in random_lists())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = truncate(scores, lengths, config(name))
    read = np.array([len(row) for row in lists_as_read()[:SAMPLE]])
    assert counts.dtype == np.int64
    assert counts.shape == (SAMPLE,)
    assert ((counts >= 0) & (counts <= read)).all()


@pytest.mark.parametrize("name", METHODS)
def test_only_the_list_as_read_matters(name):
    scores, lengths = (part[:SAMPLE] for part in random_lists())
    tidy = np.zeros_like(scores)
    for row, read in zip(tidy, lists_as_read()[:SAMPLE], strict=True):
        row[: len(read)] = read
    read_lengths = np.array([len(row) for row in lists_as_read()[:SAMPLE]])
    expected = truncate(tidy, read_lengths, config(name))
    np.testing.assert_array_equal(truncate(scores, lengths, config(name)), expected)
    wider = np.pad(tidy, ((0, 0), (0, 3)), constant_values=7.0)
    np.testing.assert_array_equal(truncate(wider, read_lengths, config(name)), expected)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"cost_matched"}))
def test_a_list_is_cut_alike_alone_and_in_a_batch(name):
    scores, lengths = (part[:300] for part in random_lists())
    batch = truncate(scores, lengths, config(name)).tolist()
    assert [keep(row[:n], config(name)) for row, n in zip(scores, lengths, strict=True)] == batch
    assert [keep(row[:n].tolist(), config(name)) for row, n in zip(scores, lengths, strict=True)] == batch


@pytest.mark.parametrize("name", METHODS)
def test_nothing_to_cut(name):
    assert keep([], config(name)) == 0
    for shape in [(0, 0), (0, 4), (3, 0), (3, 4)]:
        assert truncate(np.zeros(shape), np.zeros(shape[0], dtype=int), config(name)).tolist() == [0] * shape[0]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "row",
    [[1e308, 0.0, -1e308], [1e-320, 1e-321, 0.0], [0.0, -0.0], [-5.0, -5.0, -9.0], [2.0] * 12, [float("nan")] * 3],
)
def test_odd_scores_are_no_trouble(name, row):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = keep(row, config(name))
    assert 0 <= kept <= len(row)
    assert kept == keep(row, config(name))


@pytest.mark.parametrize("name", METHODS)
def test_shapes_that_do_not_fit_are_refused(name):
    with pytest.raises(ValueError, match="found"):
        truncate(np.zeros((2, 3)), np.array([3]), config(name))


def test_importing_and_cutting_one_list_load_no_compiler_and_no_scipy():
    source = (
        "import sys\nfrom engine.truncate import GapR, FixedK, keep, gapr\n"
        "import numpy as np\nkeep([3.0, 2.0, 0.5], GapR()); keep([3.0, 2.0], FixedK())\n"
        "gapr(np.ones((100, 5)), np.full(100, 5))\n"
        "print(sorted({'numba', 'llvmlite', 'scipy', 'ray', 'torch'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"
