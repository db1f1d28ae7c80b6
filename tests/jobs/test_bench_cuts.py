"""The tables of `stopgap bench cuts`, and that each of its variants is another cut."""

import pytest

from engine.score.truncation_settings import methods
from jobs.bench.cuts import BUFFERS, STRATEGIES, claims, table


def figures(method, f1, kept, change):
    mean, low, high = change
    against = {"f1": {"difference": {"mean": mean, "low": low, "high": high}}}
    return {"method": method, "f1": {"mean": f1}, "kept": {"mean": kept}, "against": against}


def test_a_variant_follows_its_method_and_oracles_come_last():
    names = ["gapr", "adaptive_k", "oracle_f1", "top_p", "adaptive_k, buffer 5"]
    column = {name: figures(name, 0.352, 8.5515, (0.04, 0.021, 0.0601)) for name in names}
    lines = table("bm25", {"HotpotQA": column, "2Wiki": {"gapr": column["gapr"]}}).splitlines()
    assert lines[0] == "| bm25 | HotpotQA | 2Wiki |"
    assert lines[2] == "| gapr | 35.2 @ 8.55, +4.0 [+2.1, +6.0] | 35.2 @ 8.55, +4.0 [+2.1, +6.0] |"
    assert [line.split(" | ")[0] for line in lines[3:]] == [
        "| adaptive_k",
        "| adaptive_k, buffer 5",
        "| top_p",
        "| oracle_f1",
    ]
    assert lines[3].endswith(" | – |")


def test_at_equal_cost_a_mixture_of_two_buffers_stands_in():
    gapr = {"method": "gapr", "kept": {"mean": 6.25}, "under": 0.25}
    after = {"mean": 0.7, "low": 0.6, "high": 0.8}
    cells = {("hotpotqa", "bm25"): {"methods": [gapr], "reachable": 168, "gold_after_largest_gap": after}}
    # Buffer b keeps 2 + b and cuts off 0.5 - 0.04 b: at 6.25 kept that is b = 4.25 and 0.33.
    buffers = [{("hotpotqa", "bm25"): {"kept": {"mean": 2.0 + b}, "under": 0.5 - 0.04 * b}} for b in BUFFERS]
    assert claims(cells, buffers).splitlines()[-1] == (
        "| HotpotQA | bm25 | 168 | 70.0 [60.0, 80.0] | 25.0 @ 6.25 | 30.0 @ 7.00 | 33.0 (B 4.2) |"
    )


@pytest.mark.parametrize("override", ["buffer=5", *STRATEGIES.values()])
def test_a_variant_is_a_setting_that_differs_from_the_default(override):
    (changed,) = methods(["adaptive_k"], [f"adaptive_k.{override}"])
    (default,) = methods(["adaptive_k"])
    assert changed.setting != default.setting
