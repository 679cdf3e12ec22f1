"""Product functions, classes, fields and constants that no product code uses: what tests alone keep alive is dead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("console", "gateway", "mappings", "native_backend", "reconciliation", "transformers")
SIMULATED = "native_backend/log/simulated/"
_OF_HTTP = dict.fromkeys(
    ("address_family", "daemon_threads", "do_GET", "handle_error", "log_message"), "http.server asks for it"
)
KEPT = {"configuration_table": "docs/configuration.md is made by it", **_OF_HTTP}


def product() -> dict[str, str]:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}


def unused(files: Mapping[str, str]) -> list[str]:
    """`path:line: name` of what is defined and named nowhere else. A method counts as used where any object's attribute
    of that name is; what a string names, other than a docstring or `__all__`, is used, too."""
    used: set[str] = set()
    defined: list[tuple[str, int, str]] = []
    for path, text in files.items():
        tree = ast.parse(text)
        used.update(_used(tree))
        if not path.startswith(SIMULATED):
            defined += [(path, line, name) for line, name in _defined(tree)]
    return [
        f"{path}:{line}: {name}" for path, line, name in defined if name not in used | KEPT.keys() and name[:2] != "__"
    ]


def _used(tree: ast.Module) -> Iterator[str]:
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for step in tree.body:
        if isinstance(step, ast.Assign) and ast.unparse(step.targets[0]) == "__all__":
            prose |= {id(part) for part in ast.walk(step)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield name
            case ast.MatchClass():
                yield from node.kwd_attrs
            case ast.Constant(value=str(text)) if id(node) not in prose:
                yield from re.findall(r"\w+", text)


def _defined(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        if isinstance(node, ast.Module | ast.ClassDef):
            for step in node.body:
                targets = step.targets if isinstance(step, ast.Assign) else [getattr(step, "target", None)]
                yield from ((step.lineno, target.id) for target in targets if isinstance(target, ast.Name))


def test_product_code_is_used_by_product_code() -> None:
    dead = unused(product())
    assert not dead, "\n".join(["", *dead])


def test_what_is_dead_is_seen() -> None:
    dead = """
def alone(): ...
class Alone:
    field: int
    def method(self): "Calls alone of Alone."
ALONE = 1
def used(): ...
class Used:
    used_field: int
    def used_method(self): return self.used_field
used(), Used().used_method(), getattr(Used, "by_name")
def by_name(): ...
"""
    names = [line.rpartition(" ")[2] for line in unused({"gateway/x.py": dead})]
    assert sorted(names) == ["ALONE", "Alone", "alone", "field", "method"]
    assert not unused({f"{SIMULATED}x.py": dead})
