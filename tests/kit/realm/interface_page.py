"""docs/realm-interface.md, made of the interface's source: `python -m tests.kit.realm.interface_page` writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/realm-interface.md"
INTERFACE = "native_backend/interface.py"
CLASSES = {
    "NativeRealm": INTERFACE,
    "Subscribe": "native_backend/subscriptions/subscription.py",
    "Subscription": "native_backend/subscriptions/subscription.py",
    "SettlementRequest": "native_backend/journal/settlement.py",
    "DeliveryBatch": "native_backend/events/batch.py",
}


def page() -> str:
    title, _, about = _docstring(ast.parse((ROOT / INTERFACE).read_text())).partition("\n\n")
    made = "`.venv/bin/python -m tests.kit.realm.interface_page` writes this page from the source."
    parts = [f"# {title.rstrip('.')}", about, made]
    parts += [section(name, (ROOT / path).read_text(), path) for name, path in CLASSES.items()]
    return "\n\n".join(parts) + "\n"


def section(name: str, source: str, path: str) -> str:
    """A class and its public members; a member without a text is a `ValueError`."""
    [definition] = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name]
    members = [f"* `{member}`: {text}" for member, text in _members(definition, source.splitlines())]
    return "\n\n".join([f"## {name}", f"`{path}`. {_joined(_docstring(definition))}", "\n".join(members)])


def _members(definition: ast.ClassDef, lines: list[str]) -> Iterator[tuple[str, str]]:
    for at, node in enumerate(definition.body):
        behind = definition.body[at + 1] if at + 1 < len(definition.body) else None
        if isinstance(node, ast.AnnAssign):
            text = _text_of(behind) or lines[node.lineno - 1].partition("  # ")[2]
            default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
            yield _with(f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}{default}", text, definition.name)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            answer = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
            if any(ast.unparse(decorator) == "property" for decorator in node.decorator_list):
                signature = f"{node.name}{answer.replace(' -> ', ': ')}"
            else:
                signature = f"{node.name}({ast.unparse(node.args).removeprefix('self').removeprefix(', ')}){answer}"
            yield _with(signature, _docstring(node), definition.name)


def _text_of(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""


def _with(signature: str, text: str, where: str) -> tuple[str, str]:
    if not text:
        raise ValueError(f"{where}.{signature}: it needs a text")
    return signature, _joined(text[0].upper() + text[1:])


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _joined(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page())
