"""What `stopgap serve` refuses before it starts anything: one line, exit code 2."""

import socket
import sys

import pytest
from policy_files import policy_file

from cluster.policy import judge_of
from cluster.serve.server import check_exposure, check_port
from engine.config_file import load_config
from engine.errors import PreflightError
from jobs.__main__ import main


@pytest.fixture
def mistake(monkeypatch, capsys, tmp_path):
    """Call `stopgap serve` of a small experiment with a mistake: its one line."""
    monkeypatch.delenv("STOPGAP_TOKEN", raising=False)
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\nquestions: {path: none.jsonl}\nretriever: {kind: synthetic}\n"
        "models: {main: {kind: scripted}}\ntruncate: {kind: fixed, k: 6}\n"
    )

    def mistake(*arguments):
        monkeypatch.setattr(sys, "argv", ["stopgap", "serve", str(path), *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        told = capsys.readouterr()
        assert (stopped.value.code, told.out) == (2, "")
        assert told.err.count("\n") == 1
        return told.err.strip()

    return mistake


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loop.kind=retrieve_only", "gives no answers: serve it with --retriever"),
        ("observe.full_budget=true", "never stops early: serve with observe.full_budget=false"),
        ("policy.file=none.json", "none.json"),
    ],
)
def test_an_experiment_that_cannot_answer_as_asked(mistake, override, message):
    assert message in mistake(override)


def test_a_policy_of_another_judge_is_refused(mistake, tmp_path):
    other = load_config(tmp_path / "small.yaml", ["judge.field_chars=10", "observe.full_budget=true"])
    path = policy_file(judge_of(other), tmp_path / "policy.json")
    line = mistake(f"policy.file={path}")
    assert "policy.json: this experiment cannot use this policy: its judge has prompt" in line


@pytest.mark.parametrize("host", ["0.0.0.0", "203.0.113.7", "::", "example.org", ""])
def test_an_open_host_needs_a_token(mistake, host):
    line = mistake("--retriever", "--host", host)
    assert f"--host {host} can be reached from the network, and no token is set: export STOPGAP_TOKEN=..." in line


def test_a_blank_token_is_none(mistake, monkeypatch):
    monkeypatch.setenv("STOPGAP_TOKEN", "  ")
    assert "no token is set" in mistake("--retriever", "--host", "0.0.0.0")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_none(host):
    check_exposure(host, None, insecure=False)


def test_a_token_or_the_word_insecure_opens_any_host():
    check_exposure("0.0.0.0", "s3cret", insecure=False)
    check_exposure("0.0.0.0", None, insecure=True)


def test_a_port_that_is_taken(mistake):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as Serve's own sockets do
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert f"cannot listen on 127.0.0.1 port {port} (Address already in use)" in mistake(
            "--retriever", "--port", port
        )
    check_port("127.0.0.1", int(port))


def test_an_address_that_is_not_this_machines():
    with pytest.raises(PreflightError, match=r"cannot listen on 203\.0\.113\.7 port 8000"):
        check_port("203.0.113.7", 8000)


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_is_none(mistake, port):
    assert "'--port'" in mistake("--retriever", "--port", port)
