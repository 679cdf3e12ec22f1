"""Every bound of what is read of gateways' answers, with its unit. A gateway that answers nonsense costs no more."""

from __future__ import annotations

from typing import Final

ROWS: Final = 500
"""Asked for in one page of /api; a gateway gives no more."""
ERROR_PAGES: Final = 4
"""Of ROWS each, in one round: what a gateway keeps."""
ERRORS: Final = 2_000
"""Refusals and faults that are kept of one gateway."""
LINK_ROWS: Final = 5_000
"""Links, and connections, that are kept of one gateway."""
HISTORY_ENTRIES: Final = 5_000
"""Of one list of a row of the history."""
SAMPLES: Final = 20_000
"""Of one page of metrics."""
TEXT: Final = 500
"""Characters of one text of an answer."""
REPORTS: Final = 50
"""Reconciliations that are listed, the newest first."""
MANIFEST_BYTES: Final = 8 * 1024 * 1024
