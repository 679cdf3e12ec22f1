"""The seeds that are run on every change; any other number is as good for `make simulate`."""

from __future__ import annotations

SEEDS = range(160)
TRANSACTING = range(1_000, 1_000_000)  # of these the clients declare transactions
