from importlib.metadata import PackageNotFoundError

import pytest

from engine import requirements
from engine.errors import PreflightError
from engine.finding import Finding, Status, ok, warn
from engine.requirements import check_extras, check_packages, check_python

BASE = ["torch<2.15,>=2.13", "Click>=8.5", 'old-one>=2; python_version < "3"', 'vllm>=0.33; extra == "gpu"']


def versions(**found: str):
    return lambda name: found.get(name.lower().replace("-", "_"))


@pytest.mark.parametrize("needed", [">=3.11", "", ">=3.9,<4"])
def test_a_python_that_fits(needed):
    assert check_python("3.11.7", needed).status is Status.OK


def test_a_python_that_is_too_old():
    found = check_python("3.10.2", ">=3.11")
    assert (found.status, found.found) == (Status.FAIL, "3.10.2, needs >=3.11")
    assert found.remedy


def test_packages_that_fit_are_one_line_and_markers_are_honoured():
    (found,) = check_packages(BASE, versions(torch="2.13.0+cpu", click="8.5.1"))
    assert found == ok("packages", "all 2 are there and fit (torch 2.13.0+cpu)")


@pytest.mark.parametrize(
    ("torch", "status", "said"),
    [
        (None, Status.FAIL, "not installed, needs <2.15,>=2.13"),
        ("2.12.9", Status.FAIL, "2.12.9, needs <2.15,>=2.13"),
        ("2.15.0", Status.WARN, "2.15.0, needs <2.15,>=2.13"),
    ],
)
def test_a_package_that_does_not_fit_is_named_with_its_bounds(torch, status, said):
    there = {"click": "8.5.1"} | ({"torch": torch} if torch else {})
    (found,) = check_packages(BASE, versions(**there))
    assert found == Finding(status, "package torch", said, "pip install 'torch<2.15,>=2.13'")


def test_every_package_that_does_not_fit_has_its_line():
    found = check_packages(BASE, versions())
    assert [entry.what for entry in found] == ["package torch", "package Click"]


def test_an_extra_that_is_absent_is_no_fault_and_says_what_it_enables():
    (found,) = check_extras(BASE, ["gpu"], versions())
    assert found.status is Status.OK
    assert found.found == "vllm absent"
    assert found.remedy == "pip install 'stopgap[gpu]' enables models on vLLM and dense indexes on GPUs"


def test_an_extra_that_is_there_and_one_that_is_too_old():
    assert list(check_extras(BASE, ["gpu"], versions(vllm="0.33.1"))) == [ok("extra gpu", "vllm 0.33.1")]
    (old,) = check_extras(BASE, ["gpu"], versions(vllm="0.32.0"))
    assert old == warn("extra gpu", "vllm 0.32.0; needs vllm>=0.33", "pip install 'stopgap[gpu]'")


def test_two_faiss_builds_in_one_folder_are_a_warning():
    both = list(check_extras([], [], versions(faiss_cpu="1.15", faiss_gpu="1.15")))
    assert [found.status for found in both] == [Status.WARN]
    assert list(check_extras([], [], versions(faiss_cpu="1.15"))) == []


def test_a_source_folder_that_is_not_installed_is_said_so(monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(requirements.metadata, "distribution", absent)
    with pytest.raises(PreflightError, match="stopgap itself is not installed: run pip install -e"):
        requirements.declared()


def test_this_installation_declares_what_pyproject_says():
    python, needed, extras = requirements.declared()
    assert python == ">=3.11"
    assert {"cpu", "gpu", "train", "test"} <= set(extras) == set(requirements.ENABLES)
    assert any(entry.startswith("ray[") for entry in needed)
