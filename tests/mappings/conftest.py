"""A copy of the shipped directory that a test may spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mappings.compiler.table_set import SHIPPED


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for part in ("tables", "scenarios", "expanded"):
        shutil.copytree(SHIPPED / part, tmp_path / "copy" / part)
    return tmp_path / "copy"
