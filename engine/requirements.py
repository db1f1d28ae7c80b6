"""The installed packages against what a distribution declares that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from engine.errors import PreflightError
from engine.finding import Finding, Status, fail, ok, warn

DISTRIBUTION = "stopgap"
ENABLES = {
    "cpu": "searching dense indexes on the CPU",
    "gpu": "models on vLLM and dense indexes on GPUs",
    "train": "training a judge",
    "test": "the test suite",
}
"""What each extra of the distribution is for."""

SHOWN = ("ray", "torch", "transformers", "pyserini")
_AT_LEAST = (">=", ">", "==", "===", "~=")

VersionOf = Callable[[str], str | None]
"""The installed version of a distribution, None where there is none."""


def installed(name: str) -> str | None:
    """The version of an installed distribution, None where there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def declared() -> tuple[str, list[str], list[str]]:
    """(Python versions, requirements, extras) as declared by the installed distribution.

    Raises PreflightError where it is not installed, as in a copied source folder.
    """
    try:
        found = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        raise PreflightError(f"{DISTRIBUTION} itself is not installed: run pip install -e . in its folder") from None
    extras = found.metadata.get_all("Provides-Extra") or []
    return found.metadata["Requires-Python"] or "", list(found.requires or []), list(extras)


def check_python(version: str, needed: str) -> Finding:
    """The running Python against the versions declared, as in ">=3.11"."""
    if SpecifierSet(needed).contains(version, prereleases=True):
        return ok("python", f"{version} (needs {needed or 'any'})")
    return fail("python", f"{version}, needs {needed}", "make the environment anew with a Python that fits")


def check_packages(requirements: Sequence[str], version_of: VersionOf = installed) -> list[Finding]:
    """One finding per requirement that is not met, or a single one that says that all are.

    Requirements of extras, and those whose markers do not hold here, are left out. A version above an upper bound
    is a warning, a missing package or one below its lower bound a failure.
    """
    needed = [requirement for requirement in _parsed(requirements) if _applies(requirement, "")]
    wrong = [finding for requirement in needed if (finding := _judged(requirement, version_of))]
    if wrong:
        return wrong
    shown = ", ".join(f"{name} {version}" for name in SHOWN if (version := version_of(name)))
    return [ok("packages", f"all {len(needed)} are there and fit" + (f" ({shown})" if shown else ""))]


def check_extras(
    requirements: Sequence[str], extras: Sequence[str], version_of: VersionOf = installed
) -> Iterator[Finding]:
    """One finding per extra: the versions of its packages, or what installing it would enable.

    An absent extra is no fault; a package of one that is there in a version that does not fit is a warning.
    """
    parsed = _parsed(requirements)
    for extra in extras:
        needed = [entry for entry in parsed if _applies(entry, extra) and not _applies(entry, "")]
        versions = {entry.name: version_of(entry.name) for entry in needed}
        found = ", ".join(f"{name} {version or 'absent'}" for name, version in versions.items())
        bad = [entry for entry in needed if versions[entry.name] and _judged(entry, version_of)]
        install = f"pip install '{DISTRIBUTION}[{extra}]'"
        if bad:
            asked = ", ".join(f"{entry.name}{entry.specifier}" for entry in bad)
            yield warn(f"extra {extra}", f"{found}; needs {asked}", install)
        elif None in versions.values():
            yield ok(f"extra {extra}", found, f"{install} enables {ENABLES.get(extra, 'more')}")
        else:
            yield ok(f"extra {extra}", found)
    both = [name for name in ("faiss-cpu", "faiss-gpu") if version_of(name)]
    if len(both) > 1:
        yield warn("faiss", f"{' and '.join(both)} are both installed into one folder", "uninstall both, install one")


def _parsed(requirements: Sequence[str]) -> list[Requirement]:
    return [Requirement(text) for text in requirements]


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _judged(requirement: Requirement, version_of: VersionOf) -> Finding | None:
    """What is wrong with the installed version of a requirement; None where nothing is."""
    what, bounds = f"package {requirement.name}", str(requirement.specifier)
    install = f"pip install '{requirement.name}{bounds}'"
    version = version_of(requirement.name)
    if version is None:
        return fail(what, f"not installed, needs {bounds or 'any version'}", install)
    if requirement.specifier.contains(version, prereleases=True):
        return None
    lower = SpecifierSet(",".join(str(bound) for bound in requirement.specifier if bound.operator in _AT_LEAST))
    status = Status.WARN if lower.contains(version, prereleases=True) else Status.FAIL
    return Finding(status, what, f"{version}, needs {bounds}", install)
