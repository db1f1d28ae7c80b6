"""Bytes from plain files, gzip, URLs, and the errors on the way."""

import gzip
from pathlib import Path

import fsspec
import pytest

from engine.data.source import folder_names, is_folder, open_bytes
from engine.errors import DataError


def content(path: str | Path) -> bytes:
    with open_bytes(str(path)) as stream:
        return stream.read()


def test_gzip_is_known_by_content_not_by_name(tmp_path: Path) -> None:
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    (tmp_path / "plain.gz").write_bytes(b"one\ntwo\n")
    assert content(tmp_path / "packed.jsonl") == content(tmp_path / "plain.gz") == b"one\ntwo\n"


def test_byte_order_mark_is_skipped_also_inside_gzip(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfx")
    (tmp_path / "b").write_bytes(gzip.compress(b"\xef\xbb\xbfx"))
    assert content(tmp_path / "a") == content(tmp_path / "b") == b"x"


def test_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert content(tmp_path / "empty") == b""


def test_urls_are_opened_through_fsspec(tmp_path: Path) -> None:
    with fsspec.open("memory://source-test/deep/a.jsonl", "wb") as file:
        file.write(gzip.compress(b"line\n" * 3))
    assert content("memory://source-test/deep/a.jsonl") == b"line\n" * 3
    assert is_folder("memory://source-test/deep")
    assert folder_names("memory://source-test/deep") == ["a.jsonl"]
    assert not is_folder("memory://source-test/absent")
    (tmp_path / "b").write_bytes(b"x")
    assert content(f"file://{tmp_path}/b") == b"x"


def test_missing_file_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=rf"^absent\.jsonl: file not found \(looked for {tmp_path}/absent\.jsonl\)"):
        content("absent.jsonl")
    with pytest.raises(DataError, match=r"^memory://source-test/no: file not found"):
        content("memory://source-test/no")


def test_folder_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="this is a folder; name the file in it"):
        content(tmp_path)


def test_unknown_protocol_names_it() -> None:
    with pytest.raises(DataError, match=r"^foo://x: cannot be opened \(ValueError: .*foo.*\)"):
        content("foo://x")


@pytest.mark.parametrize(
    ("magic", "name"),
    [(b"PK\x03\x04", "a zip archive"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PAR1", "Parquet"), (b"\xff\xfe{", "UTF-16")],
)
def test_other_packing_is_named(tmp_path: Path, magic: bytes, name: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(magic + b"........")
    with pytest.raises(DataError, match=name):
        content(tmp_path / "x.jsonl")


def test_cut_gzip_is_an_error_not_a_short_file(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(range(256)) * 50)
    (tmp_path / "cut.gz").write_bytes(packed[:-12])
    with pytest.raises(DataError, match="gzip stream is broken"):
        content(tmp_path / "cut.gz")
