"""Bytes of a data file: local or behind a URL, plain or gzip."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, cast

from engine.errors import DataError

_BUFFER = 1 << 20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UNREADABLE = {
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"PAR1": "a Parquet file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


@contextmanager
def open_bytes(path: str) -> Iterator[io.BufferedReader]:
    """The decompressed bytes of a local path or fsspec URL, as a buffered stream.

    Gzip is known by its first bytes, whatever the name; a UTF-8 byte order mark is skipped. Raises DataError for a
    file that is not there, cannot be read, is a folder, is packed in a way that is not read here, or whose gzip
    stream is broken.
    """
    try:
        with ExitStack() as opened:
            stream = opened.enter_context(_buffered(_open(path)))
            head = stream.peek(8)
            if head.startswith(_GZIP):
                unpacked = cast(IO[bytes], gzip.GzipFile(fileobj=stream))
                stream = opened.enter_context(_buffered(unpacked))
                head = stream.peek(8)
            for magic, what in _UNREADABLE.items():
                if head.startswith(magic):
                    raise DataError(f"{path}: UTF-8 JSON, plain or gzip, was needed, but this is {what}; convert it")
            if head.startswith(_BOM):
                stream.read(len(_BOM))
            yield stream
    except FileNotFoundError as error:
        raise _not_found(path) from error
    except IsADirectoryError as error:
        raise DataError(f"{path}: a file was needed, but this is a folder; name the file in it") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip stream is broken ({error}); fetch or pack the file again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}); check its permissions and the connection") from error


def is_folder(path: str) -> bool:
    """Whether a local path or fsspec URL is a folder; False where nothing is there."""
    return bool(_ask(path, "isdir")) if "://" in path else os.path.isdir(path)


def folder_names(path: str) -> list[str]:
    """The names in a folder, sorted; empty where there is no such folder."""
    if not is_folder(path):
        return []
    if "://" in path:
        return sorted(entry.rstrip("/").rsplit("/", 1)[-1] for entry in _ask(path, "ls", detail=False))
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        raise DataError(f"{path}: the folder cannot be listed ({error}); check its permissions") from error


def _open(path: str) -> IO[bytes]:
    return cast(IO[bytes], _ask(path, "open", mode="rb")) if "://" in path else open(path, "rb", buffering=0)


def _buffered(stream: IO[bytes]) -> io.BufferedReader:
    # BufferedReader iterates lines in C, which GzipFile and fsspec files do not; it needs only readinto().
    return io.BufferedReader(cast(io.RawIOBase, stream), _BUFFER)


def _ask(url: str, method: str, **options: Any) -> Any:
    """The reply of a method of the URL's file system to the URL's path."""
    import fsspec

    # Each protocol raises errors of its own library (missing package, credentials, connection): all are the user's.
    try:
        system, inner = fsspec.core.url_to_fs(url)
        return getattr(system, method)(inner, **options)
    except FileNotFoundError as error:
        raise _not_found(url) from error
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{url}: cannot be opened ({type(error).__name__}: {reason}); "
            "check the URL, the credentials and the package for its protocol"
        ) from error


def _not_found(path: str) -> DataError:
    where = path if "://" in path else os.path.abspath(path)
    return DataError(f"{path}: file not found (looked for {where}); check the path, or fetch the data first")
