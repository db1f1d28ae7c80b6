"""The server, from its first answer over loading and serving to a clean end."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import ray
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle

from cluster.monitor import MONITOR_ACTOR
from cluster.pool import running_pools
from cluster.preflight import check_resources
from cluster.serve.answers import AnswerIngress
from cluster.serve.ingress import RetrievalIngress, token_digest
from cluster.serve.protocol import Limits
from cluster.session import node_resources, ray_session
from engine.config import ExperimentConfig, PoolConfig
from engine.errors import PreflightError, RunError
from engine.retrieve.compose import retriever_pools
from engine.retrieve.index import Index
from engine.services import pools_of

APPLICATION = "stopgap"
PATH = {False: "/retrieve", True: "/v1/chat/completions"}
"""Where to ask: the retriever alone, or for answers."""

BEAT_S = 5.0
_SERVE_CONTROLLER = {"name": "SERVE_CONTROLLER_ACTOR", "namespace": "serve"}
_SILENT = (RayError, RayServeException, TimeoutError)
"""What a call to the ingress raises when it is on its way back, or too busy to say."""

_QUIET = {"log_level": "ERROR", "enable_access_log": False}


def serve_experiment(
    config: ExperimentConfig,
    load: Callable[[], Index],
    host: str,
    port: int,
    limits: Limits,
    *,
    answers: bool,
    token: str | None = None,
    insecure: bool = False,
    address: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Serves an experiment over HTTP until SIGTERM or SIGINT, then ends in order; without answers its retriever alone.

    The HTTP server is up first; load() then gives the index, building it where it must, the replicas open it and
    their models, and only then requests are taken. At the end those under way are answered, and the actors are
    killed. say is told in one line each: that the server answers, that it is ready, that it stops.

    Raises PreflightError for a host other than loopback without a token (unless insecure), a port that is taken, or
    a cluster that is too small or already runs Serve; RunError where a pool cannot start; and what load() raises.
    """
    check_exposure(host, token, insecure)
    check_port(host, port)
    pools: Mapping[str, PoolConfig] = pools_of(config) if answers else retriever_pools(config.retriever)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    with _ending_on_signals(), ray_session(address):
        signal.signal(signal.SIGTERM, _end)  # Ray sets its own
        check_resources(config, pools, node_resources())
        with _http(host, port, _application(config, limits, token, answers)) as handle:
            say(f"{url} answers; the index is loading")
            about = _about(config, load(), answers)
            with _monitor() as monitor, running_pools(pools, monitor, config.cluster.init_timeout_s) as replicas:
                try:
                    handle.open.remote(replicas, about).result()
                    told = ", ".join(f"{name} {value}" for name, value in about.items())
                    say(f"ready: {told}; POST {url}{PATH[answers]}")
                    _watch(handle, replicas, about)
                finally:
                    say("stopping once the requests under way are answered")
                    with suppress(*_SILENT):
                        handle.drain.remote().result(timeout_s=limits.timeout_s)


def _about(config: ExperimentConfig, index: Index, answers: bool) -> dict[str, Any]:
    """What /health tells: the retriever and its index, and with answers the experiment and where it stops."""
    about: dict[str, Any] = {"kind": config.retriever.kind, "passages": index.n_docs, "digest": index.digest}
    if answers:
        about |= {"experiment": config.name, "loop": config.loop.kind}
        if config.policy.decides:
            about |= {"stop_at": config.policy.stop_at, "policy": config.policy.digest}
    return about


def _watch(ingress: DeploymentHandle, replicas: dict[str, list[str]], about: dict[str, Any]) -> NoReturn:
    """Opens the ingress again and again, as Serve may have restarted it; RunError once it cannot serve any more."""
    while True:
        time.sleep(BEAT_S)
        refusal = None
        with suppress(*_SILENT):
            refusal = ingress.open.remote(replicas, about).result(timeout_s=BEAT_S)
        if refusal:
            raise RunError(refusal)


def check_exposure(host: str, token: str | None, insecure: bool) -> None:
    """Raises PreflightError where anybody on the network could search: no loopback address, no token."""
    if token or insecure or host == "localhost":
        return
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    raise PreflightError(
        f"--host {host} can be reached from the network, and no token is set: export STOPGAP_TOKEN=..., keep to "
        "127.0.0.1, or add --insecure where something else guards the port"
    )


def check_port(host: str, port: int) -> None:
    """Raises PreflightError where host and port cannot be listened on; two Serves would share a port unnoticed."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise PreflightError(f"cannot listen on {host} port {port} ({error.strerror}): choose another") from error


@contextmanager
def _monitor() -> Iterator[str]:
    """The name of a Monitor, by which the replicas report their starts."""
    name = f"stopgap-monitor-{uuid.uuid4().hex}"
    actor = MONITOR_ACTOR.options(name=name).remote()
    yield name
    ray.kill(actor)


def _application(config: ExperimentConfig, limits: Limits, token: str | None, answers: bool) -> serve.Application:
    digest = token_digest(token) if token else None
    deployment = serve.deployment(serve.ingress()(AnswerIngress if answers else RetrievalIngress)).options(
        max_ongoing_requests=2 * limits.waiting,  # the ingress keeps its own queue, and refuses in its own words
        ray_actor_options={"num_cpus": config.cluster.runner_cpus},  # the room that the pre-flight kept for runners
        graceful_shutdown_wait_loop_s=0.1,
        logging_config=_QUIET,
    )
    if answers:
        return deployment.bind(config, limits, digest)
    return deployment.bind(config.retriever, config.cluster.call_retries, limits, digest)


@contextmanager
def _http(host: str, port: int, application: serve.Application) -> Iterator[DeploymentHandle]:
    """Ray Serve with an ingress that says it is loading; shut down on the way out."""
    if _serve_runs():
        raise PreflightError(
            "Ray Serve already runs on this cluster, for something else: end it (`serve shutdown`) or use another"
        )
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    try:
        yield _deployed(application, host, port)
    finally:
        serve.shutdown()


def _deployed(ingress: serve.Application, host: str, port: int) -> DeploymentHandle:
    """Starts Serve and the ingress at the same time: a proxy that listens before it knows the ingress says 404."""
    options = {"host": host, "port": port}
    try:
        with ThreadPoolExecutor(1) as thread:
            starting = thread.submit(
                serve.start, proxy_location="HeadOnly", http_options=options, logging_config=_QUIET
            )
            while not (_serve_runs() or starting.done()):
                time.sleep(0.05)
            if starting.done():
                starting.result()
            handle = serve.run(ingress, name=APPLICATION)
            starting.result()
            return handle
    except (RuntimeError, RayError) as error:
        raise RunError(f"the HTTP server could not start: {str(error).strip().splitlines()[-1]}") from error


def _serve_runs() -> bool:
    return _SERVE_CONTROLLER in ray.util.list_named_actors(all_namespaces=True)


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """SIGTERM and SIGINT end the block, whatever it is doing, as its regular end."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with suppress(_Ended):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Ended(BaseException):
    """A signal to end was received."""


def _end(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise _Ended
