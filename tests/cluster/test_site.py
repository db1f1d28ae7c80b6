import pytest
import ray

from cluster.doctor import Site, check_ray, check_room, site_memory, survey
from engine import room
from engine.config import ExperimentConfig
from engine.errors import PreflightError
from engine.finding import Status

GB = 10**9


def experiment(**changes) -> ExperimentConfig:
    base = {
        "name": "t",
        "questions": {"path": "q.jsonl"},
        "retriever": {"kind": "synthetic"},
        "models": {"main": {"kind": "scripted"}},
        "truncate": {"kind": "fixed", "k": 6},
    }
    return ExperimentConfig.model_validate(base | changes)


def test_this_machine_is_counted_without_starting_ray():
    running = ray.is_initialized()
    site = survey(None)
    assert site.address is None
    assert site.nodes[0]["CPU"] >= 1
    assert survey("local").address is None
    assert site_memory(site)[1] == room.machine_memory()[1]
    assert ray.is_initialized() is running


def test_a_clusters_nodes_are_added_up():
    site = Site([{"CPU": 4.0, "memory": 1e9}, {"CPU": 2.0, "GPU": 1.0, "memory": 2e9}], "10.0.0.1:6379")
    assert check_ray(site).found.endswith("2 nodes at 10.0.0.1:6379: 6 CPUs, 1 GPUs")
    assert site_memory(site) == (3 * GB, 3 * GB)
    assert check_ray(Site([], "10.0.0.1:6379")).status is Status.FAIL


@pytest.fixture
def _no_connection(monkeypatch):
    """As in a fresh process, also where another test's Ray is running in this one."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)


@pytest.mark.usefixtures("_no_connection")
def test_an_address_where_nothing_listens_fails_within_seconds():
    with pytest.raises(PreflightError, match=r"nothing answers at 127\.0\.0\.1:1 .*ray start --head"):
        survey("127.0.0.1:1")


def test_gpus_and_cpus_that_are_not_there_fail_with_both_numbers():
    two = Site([{"CPU": 2.0, "GPU": 0.0}])
    assert check_room(experiment(), two).status is Status.OK
    asked = experiment(models={"main": {"kind": "scripted", "num_gpus": 1}})
    assert "needs 1 GPUs (model:main 1) but the cluster has 0" in check_room(asked, two).found
    asked = experiment(models={"main": {"kind": "scripted", "num_cpus": 4}})
    assert check_room(asked, two).status is Status.FAIL
