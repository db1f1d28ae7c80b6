import pytest

from cluster.preflight import check_resources
from engine.config import ExperimentConfig
from engine.errors import PreflightError
from engine.services import pools_of

TWO_CPUS = [{"CPU": 2.0, "memory": 1e10}]


def config(runners=1, **model) -> ExperimentConfig:
    """One scripted or vLLM model beside a synthetic retriever of 0.1 CPU and runners of 0.2 CPU each."""
    base = {"kind": "vllm", "model": "m"} if model.get("kind") == "vllm" else {"kind": "scripted"}
    return ExperimentConfig.model_validate(
        {
            "name": "t",
            "questions": {"path": "q"},
            "retriever": {"kind": "synthetic"},
            "models": {"main": base | model},
            "truncate": {"kind": "fixed", "k": 6},
            "cluster": {"runners": runners},
        }
    )


def check(nodes, **changes) -> None:
    experiment = config(**changes)
    check_resources(experiment, pools_of(experiment), nodes)


def refused(nodes, **changes) -> str:
    with pytest.raises(PreflightError) as caught:
        check(nodes, **changes)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("nodes", "changes"),
    [
        (TWO_CPUS, {}),
        (TWO_CPUS, {"num_cpus": 1.7}),
        (TWO_CPUS, {"num_cpus": 0.85, "replicas": 2}),
        ([{"CPU": 0.3}, {"CPU": 4.0}], {"num_cpus": 4.0}),
        ([{"CPU": 1.0}, {"CPU": 1.0}], {"num_cpus": 0.5, "replicas": 2, "runners": 4}),
        ([{"CPU": 2.0, "GPU": 1.0}], {"num_gpus": 1}),
        ([{"CPU": 2.0, "GPU": 1.0}], {"num_gpus": 0.5, "replicas": 2}),
    ],
)
def test_what_is_there_is_enough(nodes, changes):
    check(nodes, **changes)


def test_four_cpus_on_two_are_refused_with_both_numbers_and_who_asks():
    assert refused(TWO_CPUS, num_cpus=4) == (
        "the run needs 4.3 CPUs (retriever 0.1, model:main 4, runners 0.2) but the cluster has 2; "
        "lower replicas or num_cpus, or use a larger cluster"
    )


def test_a_gpu_where_there_is_none_is_refused():
    assert refused(TWO_CPUS, num_gpus=1) == (
        "the run needs 1 GPUs (model:main 1) but the cluster has 0; lower replicas or num_gpus, or use a larger cluster"
    )


def test_replicas_and_runners_count_each():
    assert "(retriever 0.1, model:main 1.8, runners 0.2)" in refused(TWO_CPUS, num_cpus=0.6, replicas=3)
    assert "(retriever 0.1, model:main 0.1, runners 2)" in refused(TWO_CPUS, runners=10)


@pytest.mark.parametrize(
    ("nodes", "changes", "said"),
    [
        (
            [{"CPU": 2.0}, {"CPU": 2.0}, {"CPU": 1.0}],
            {"num_cpus": 3},
            "one replica of model:main needs 3 CPUs on one node, but the largest node has 2",
        ),
        (
            [{"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0, "GPU": 1.0}],
            {"num_gpus": 2},
            "one replica of model:main needs 2 GPUs on one node, but the largest node has 1",
        ),
    ],
)
def test_a_replica_that_fits_the_total_but_no_single_node(nodes, changes, said):
    assert refused(nodes, **changes) == said


def test_an_engine_needs_a_gpu_for_every_rank_on_one_node_unless_ray_spreads_it():
    ranks = {"kind": "vllm", "num_gpus": 1, "tensor_parallel": 2, "pipeline_parallel": 2}
    pairs = [{"CPU": 8.0, "GPU": 2.0}, {"CPU": 8.0, "GPU": 2.0}]
    assert "model:main needs 4 GPUs on one node" in refused(pairs, **ranks)
    check([{"CPU": 8.0, "GPU": 4.0}], **ranks)
    check(pairs, executor="ray", **ranks)
    assert "needs 4 GPUs (model:main 4)" in refused(pairs[:1], executor="ray", **ranks)


def test_ranks_that_ray_spreads_take_their_cpus_once_each():
    ranks = {"kind": "vllm", "num_gpus": 1, "num_cpus": 2, "tensor_parallel": 4, "executor": "ray"}
    assert "model:main 8" in refused([{"CPU": 4.0, "GPU": 4.0}], **ranks)
    check([{"CPU": 9.0, "GPU": 4.0}], **ranks)


def test_a_cluster_without_nodes_has_nothing():
    assert "the cluster has 0" in refused([])
