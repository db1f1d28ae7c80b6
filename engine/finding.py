"""What a check of the environment found: a line a person can act on, whatever the check itself did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.errors import StopgapError


class Status(StrEnum):
    """ok: nothing to do. warn: a run is possible, but see what to do. fail: a run would not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's outcome: what was looked at, what was found, and what to do (empty where there is nothing to do)."""

    status: Status
    what: str
    found: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """As in `fail  java: Java 17 at /opt/java, needs 21 - unset JAVA_HOME`."""
        return f"{self.status:<4}  {self.what}: {self.found}" + (f" — {self.remedy}" if self.remedy else "")


def ok(what: str, found: str, remedy: str = "") -> Finding:
    """A finding that stands in no run's way."""
    return Finding(Status.OK, what, found, remedy)


def warn(what: str, found: str, remedy: str) -> Finding:
    """A finding that a run can live with."""
    return Finding(Status.WARN, what, found, remedy)


def fail(what: str, found: str, remedy: str = "") -> Finding:
    """A finding that a run would fail on."""
    return Finding(Status.FAIL, what, found, remedy)


def examined(what: str, check: Callable[..., Iterable[Finding]], *arguments: Any) -> list[Finding]:
    """The findings of check(*arguments); an exception becomes a failing one, so that no check takes others along.

    A StopgapError already says what to do. Any other exception is shown with its type and message.
    """
    try:
        return list(check(*arguments))
    except StopgapError as error:
        return [fail(what, _one_line(error))]
    except Exception as error:  # whatever a broken environment raises is what this check found
        return [fail(what, f"the check broke off with {type(error).__name__}: {_one_line(error)}")]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or "no message"
