"""Configurations, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.settings import (
    Settings,
    SettingsProblems,
    load_settings,
)

REALM = "realm: {kind: embedded, path: realm}\n"


def load(directory: Path, text: str) -> Settings:
    path = directory / "gateway.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def problems(directory: Path, text: str) -> list[str]:
    """Without the directory, so that they can be compared."""
    with pytest.raises(SettingsProblems) as raised:
        load(directory, text)
    return [str(problem).replace(f"{directory}/", "") for problem in raised.value.problems]
