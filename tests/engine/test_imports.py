"""The layering and naming rules of the three folders, read from their source, and imports without the extras."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("engine", "cluster", "jobs")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
FORBIDDEN = {"engine": {"ray", "cluster", "jobs"}, "cluster": {"jobs"}, "jobs": set()}
HEAVY = {
    "numba",
    "scipy",
    "torch",
    "transformers",
    "vllm",
    "jnius",
    "pyserini",
    "openai",
    "faiss",
    "sentence_transformers",
    "peft",
    "trl",
    "accelerate",
    "xgrammar",
    "datasets",
}
EXTRAS = ("vllm", "faiss", "trl")
MAX_LINES = 300


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(node: ast.AST) -> list[str]:
    """Full names of the modules that one node imports, in a statement or by import_module with a literal name."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "."]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
        "import_module",
        "__import__",
    ):
        return [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below this one that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from at_import(child)


def roots(nodes: Iterator[ast.AST]) -> set[str]:
    return {name.partition(".")[0] for node in nodes for name in imported(node)}


def test_there_is_source_to_check():
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(FOLDERS)
    assert len(FILES) > 50


def test_the_readers_of_imports_see_what_they_should():
    source = (
        "import a.b\nfrom c import d\nif TYPE_CHECKING:\n    import e\n"
        "class F:\n    import g\n    def h(self):\n        import i\n"
        "try:\n    import j\nexcept ImportError:\n    j = None\nk = importlib.import_module('l.m')\n"
    )
    tree = ast.parse(source)
    assert roots(ast.walk(tree)) == {"a", "c", "e", "g", "i", "j", "l"}
    assert roots(at_import(tree)) == {"a", "c", "g", "j", "l"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_down_and_heavy_libraries_wait_for_their_use(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    folder = path.relative_to(ROOT).parts[0]
    assert roots(ast.walk(tree)) & FORBIDDEN[folder] == set()
    assert roots(at_import(tree)) & HEAVY == set()
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_has_one_subject_in_its_name_and_in_its_size(path):
    words = {part for name in path.relative_to(ROOT).with_suffix("").parts for part in name.lower().split("_")}
    banned = {"util", "utils", "helper", "helpers", "common", "manager", "misc"}
    assert words & banned == set()
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= MAX_LINES


IMPORT_ALL = """
import importlib, json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in set(BLOCKED):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Blocked())
for name in BLOCKED:
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} was not blocked")
failures = {}
for module in MODULES:
    try:
        importlib.import_module(module)
    except Exception as error:
        failures[module] = f"{type(error).__name__}: {error}"
print(json.dumps([failures, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def import_all(modules: list[str], blocked: tuple[str, ...]) -> tuple[dict[str, str], set[str]]:
    """(failures by module, top-level modules loaded) of a fresh interpreter that imports the modules."""
    source = f"MODULES = {modules!r}\nBLOCKED = {blocked!r}\n{IMPORT_ALL}"
    told = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert told.returncode == 0, told.stderr
    failures, loaded = json.loads(told.stdout.splitlines()[-1])
    return failures, set(loaded)


@pytest.mark.slow
def test_every_module_imports_without_the_extras():
    modules = [module_of(path) for path in FILES]
    failures, loaded = import_all(modules, EXTRAS)
    assert failures == {}
    assert not loaded & set(EXTRAS)


def test_importing_the_engine_loads_no_heavy_library_and_no_ray():
    modules = [module_of(path) for path in FILES if path.relative_to(ROOT).parts[0] == "engine"]
    failures, loaded = import_all(modules, (*EXTRAS, "ray"))
    assert failures == {}
    assert "engine" in loaded
    assert not loaded & (HEAVY | {"ray", "cluster", "jobs", "pandas", "sklearn"})
