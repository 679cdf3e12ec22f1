"""The chart's values.schema.json takes for `config` what docs/configuration.schema.json takes."""

from __future__ import annotations

import subprocess
import sys

from tests.deploy.helm.rendered import CHART

MADE_BY = CHART.parent / "values_schema.py"


def test_the_schema_is_what_its_program_prints() -> None:
    printed = subprocess.run([sys.executable, MADE_BY], capture_output=True, text=True, check=True).stdout
    assert (CHART / "values.schema.json").read_text() == printed, f"run {MADE_BY.name}: its docstring says how"
