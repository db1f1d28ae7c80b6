"""What a user's mistake looks like: one line, exit code 2, no traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.__main__ import VERBS, cli, main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def config(tmp_path) -> str:
    """An experiment that needs no corpus and no model; its question file is not there."""
    path = tmp_path / "small.yaml"
    path.write_text(
        f"name: small\nruns_dir: {tmp_path / 'runs'}\nquestions: {{path: {tmp_path / 'none.jsonl'}}}\n"
        "retriever: {kind: synthetic}\nmodels: {main: {kind: scripted}}\ntruncate: {kind: fixed, k: 6}\n"
    )
    return str(path)


@pytest.fixture
def call(monkeypatch, capsys):
    """Call the command line in this process: (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["stopgap", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        told = capsys.readouterr()
        return stopped.value.code, told.out, told.err

    return call


@pytest.fixture
def mistake(call):
    """Call the command line with a mistake: its one line."""

    def mistake(*arguments: str) -> str:
        code, out, err = call(*arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert err.startswith("stopgap: error: ")
        return err.strip()

    return mistake


def test_an_unknown_verb(mistake):
    assert "No such command 'rnu'" in mistake("rnu", "x.yaml")


def test_an_unknown_option_and_a_missing_argument_point_to_the_verbs_page(mistake, config):
    assert "--limt" in mistake("run", config, "--limt", "3")
    assert "Missing argument 'CONFIG'" in mistake("run")
    assert "stopgap run --help" in mistake("run")


@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_a_limit_that_is_no_count(mistake, config, value):
    assert "--limit" in mistake("run", config, "--limit", value)


@pytest.mark.parametrize("verb", ["run", "index"])
def test_a_missing_configuration(mistake, tmp_path, verb):
    line = mistake(verb, str(tmp_path / "none.yaml"))
    assert f"cannot read the configuration {tmp_path / 'none.yaml'}: No such file" in line


@pytest.mark.parametrize("verb", ["run", "index"])
@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("cluster.shard_sise=3", "unknown key cluster.shard_sise (did you mean 'shard_size'?)"),
        ("loop.max_turns", "override 'loop.max_turns' must look like a.b=value"),
        ("loop.max_turns=few", "loop.max_turns: input should be a valid integer"),
        ("seed=[1", "override 'seed=[1': the value is not YAML"),
        ("retriever.kind=nothing", "'nothing'"),
    ],
)
def test_a_bad_key_or_override(mistake, config, verb, override, said):
    assert said in mistake(verb, config, override)


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
def test_a_missing_question_file_names_it_and_starts_nothing(mistake, config, tmp_path, option):
    line = mistake("run", config, *option)
    assert f"{tmp_path / 'none.jsonl'}: file not found" in line
    assert not (tmp_path / "runs").exists()


def test_a_missing_question_file_is_found_before_an_index_is_built(mistake, config, tmp_path):
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(json.dumps({"id": "p1", "title": "T", "text": "Text."}) + "\n")
    retriever = f"retriever={{kind: bm25, corpus: {{path: {corpus}}}, index: {tmp_path / 'index'}}}"
    assert "none.jsonl: file not found" in mistake("run", config, retriever)
    assert not (tmp_path / "index").exists()


def test_a_runs_dir_that_cannot_be_made(mistake, config, tmp_path):
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "q1", "question": "Who?"}\n')
    line = mistake("run", config, f"questions.path={questions}", f"runs_dir={questions}/deep")
    assert f"runs_dir {questions}/deep cannot be written" in line


def test_a_folder_that_is_no_run(call, tmp_path):
    for arguments in (["show", str(tmp_path), "q1"], ["report", str(tmp_path)]):
        code, out, err = call(*arguments)
        assert code == 2
        assert out == ""
        assert err.count("\n") == 1
        assert f"{tmp_path} is not a run" in err


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_of_each_verb_says_what_it_does_and_shows_examples(verb):
    told = CliRunner().invoke(cli, [verb, "--help"], prog_name="stopgap")
    assert told.exit_code == 0
    assert told.output.startswith(f"Usage: stopgap {verb} ")
    assert "Examples:" in told.output
    assert told.output.count(f"stopgap {verb} ") >= 2
    assert max(map(len, told.output.splitlines())) <= 120


def test_the_first_page_lists_the_verbs_and_the_exit_codes():
    told = CliRunner().invoke(cli, ["--help"], prog_name="stopgap")
    assert told.exit_code == 0
    assert all(f"  {verb} " in told.output for verb in VERBS)
    assert "Exit codes" in told.output


def test_without_a_verb_the_page_is_shown(call):
    code, out, err = call()
    assert code == 2
    assert "Usage:" in out + err
    assert "Traceback" not in err


def test_as_a_process_a_mistake_has_no_traceback():
    told = subprocess.run(
        [sys.executable, "-m", "jobs", "run", "nowhere.yaml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert told.stdout == ""
    assert told.stderr == ("stopgap: error: cannot read the configuration nowhere.yaml: No such file or directory\n")


def test_the_version_is_told():
    told = CliRunner().invoke(cli, ["--version"], prog_name="stopgap")
    assert told.exit_code == 0
    assert told.output.strip().startswith("stopgap, version ")
