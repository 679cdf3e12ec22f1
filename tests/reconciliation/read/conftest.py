"""Days in a row of one realm, with this room's Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.days import Days


@pytest.fixture
def days(tmp_path: Path, reconcile: Reconcile, session: SparkSession) -> Days:
    return Days(tmp_path, reconcile, session)
