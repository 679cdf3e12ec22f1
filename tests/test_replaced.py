"""What a test replaces in a module of ours is there: a test of the long tier that replaces what has moved would fail
only there.

Looked at is `setattr(module, "name", ...)`, and the pair `(module, "name")`, where the test imports the module. Modules
are read here and not imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.kit.source_files import source_files

TREES = ("bench", "console", "gateway", "mappings", "native_backend", "reconciliation", "tests", "transformers")


def module_path(name: str, files: Mapping[str, str]) -> str | None:
    """The file of a dotted name; None: it is no module of ours."""
    path = name.replace(".", "/")
    return next((file for file in (f"{path}.py", f"{path}/__init__.py") if file in files), None)


def imported(tree: ast.Module, files: Mapping[str, str]) -> dict[str, str]:
    """Modules of ours, by the name that the file has for them."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules |= {alias.asname or alias.name: alias.name for alias in names}
            case ast.ImportFrom(module=str(parent), names=names):
                modules |= {alias.asname or alias.name: f"{parent}.{alias.name}" for alias in names}
    paths = {name: module_path(module, files) for name, module in modules.items()}
    return {name: path for name, path in paths.items() if path is not None}


def bound(tree: ast.Module) -> Iterator[str]:
    """The names of a module. What stands in a function counts, too: a wrong name is what is looked for."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)


def replaced(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, module and name; as the file calls the module."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(attr="setattr"), args=[ast.Name(id=module), ast.Constant(value=str(name)), *_]
                )
                | ast.Tuple(elts=[ast.Name(id=module), ast.Constant(value=str(name))])
            ):
                yield node.lineno, module, name


def missing(files: Mapping[str, str]) -> Iterator[str]:
    """`path:line: module has no name`."""
    names: dict[str, set[str]] = {}  # of the modules in which something is replaced
    for path, text in files.items():
        if path.split("/")[0] not in ("bench", "tests") or "setattr(" not in text:
            continue
        tree = ast.parse(text)
        modules = imported(tree, files)
        for line, module, name in replaced(tree):
            if module not in modules:
                continue
            owner = modules[module]
            if owner not in names:
                names[owner] = set(bound(ast.parse(files[owner])))
            if name not in names[owner]:
                yield f"{path}:{line}: {owner} has no {name}"


def test_what_is_replaced_is_there() -> None:
    assert list(missing(source_files(TREES))) == []


def test_what_has_moved_is_seen() -> None:
    test = (
        "from gateway import x\nfrom gateway.x import Y\nimport gateway.y as other, os\n"
        "monkeypatch.setattr(x, 'judge', 1)\nmonkeypatch.setattr(x, 'moved', 1)\nmonkeypatch.setattr(other, 'z', 1)\n"
        "monkeypatch.setattr(Y, 'anything', 1)\nmonkeypatch.setattr(os, 'anything', 1)\n"
        "for module, name in ((x, 'judge'), (x, 'gone'), (Y, 'gone')): monkeypatch.setattr(module, name, 1)\n"
    )
    files = {
        "gateway/x.py": "from a import judge\nclass Y: ...\n",
        "gateway/y/__init__.py": "z: int = 1\n",
        "tests/test_x.py": test,
    }
    assert list(missing(files)) == [
        *("tests/test_x.py:5: gateway/x.py has no moved", "tests/test_x.py:9: gateway/x.py has no gone"),
    ]
