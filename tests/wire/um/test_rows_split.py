"""The scenarios of the documented delivery-state tables once more, in the profile that takes messages in several
transfers, with each message cut into some: what comes back, and what the realm is asked, is the same.
"""

from __future__ import annotations

from random import Random

import pytest

from mappings import load_tables
from tests.kit.tables.um_rows import SEED
from tests.kit.wire.splitting import in_several_transfers
from tests.wire.um.conformance import line_of, show

TABLES = load_tables(profile="extended")
ROWS = [*SEED]


@pytest.mark.parametrize("row", ROWS)
def test_um_rows_in_several_transfers(row: str) -> None:
    with in_several_transfers(Random(ROWS.index(row))):
        cut = show(line_of(row, "extended"), TABLES)
    assert str(cut) == str(show(line_of(row, "extended"), TABLES))
