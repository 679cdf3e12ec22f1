"""What the torture's own tests share."""

from __future__ import annotations

import pytest

from tests.torture.scene import Scene, good_scene


@pytest.fixture
def scene() -> Scene:
    return good_scene()
