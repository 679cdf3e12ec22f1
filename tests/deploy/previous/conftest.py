"""The release before this one is built once for the room."""

from __future__ import annotations

import pytest

from tests.deploy.previous.release import Release, install


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return install(tmp_path_factory.mktemp("previous"))
