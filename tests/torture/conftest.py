"""A good history, for the tests of the checks."""

from __future__ import annotations

import pytest

from tests.torture.checks.good_history import GoodHistory, good_history


@pytest.fixture
def history() -> GoodHistory:
    return good_history()
