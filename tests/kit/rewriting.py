"""Changing a file that another process watches."""

from __future__ import annotations

from pathlib import Path


def rewrite(path: Path, text: str) -> None:
    """In one move, as an editor does: who watches it sees the old text or the new one, never a part."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
