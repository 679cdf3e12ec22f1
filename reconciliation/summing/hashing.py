"""Spark's `xxhash64` of 64-bit numbers, by columns: sums that a cluster made and sums of this machine are added up.

Source: `org.apache.spark.sql.catalyst.expressions.XXH64.hashLong`, seed 42.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reconciliation.model import row_hash

Column = NDArray[Any]
"""One value a row; numbers are int64."""

_SEED: Final = np.uint64(row_hash.SEED)
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = map(np.uint64, row_hash.PRIMES)
_LENGTH: Final = np.uint64(8)


def hashed(first: Column, second: Column | None = None, known: Column | None = None) -> Column:
    """Of each row, as int64. `known`: where `second` is no null, which leaves a hash as it is; None: everywhere."""
    seeds = _of_longs(first, np.full(len(first), _SEED))
    if second is None:
        return seeds.view(np.int64)
    both = _of_longs(second, seeds)
    return (both if known is None else np.where(known, both, seeds)).view(np.int64)


def _of_longs(numbers: Column, seeds: Column) -> Column:
    with np.errstate(over="ignore"):
        mixed = numbers.view(np.uint64) * _PRIME_2
        rows = (seeds + _PRIME_5 + _LENGTH) ^ (_turned(mixed, 31) * _PRIME_1)
        rows = _turned(rows, 27) * _PRIME_1 + _PRIME_4
        rows ^= rows >> np.uint64(33)
        rows *= _PRIME_2
        rows ^= rows >> np.uint64(29)
        rows *= _PRIME_3
        rows ^= rows >> np.uint64(32)
    return rows


def _turned(numbers: Column, bits: int) -> Column:
    """To the left."""
    return (numbers << np.uint64(bits)) | (numbers >> np.uint64(64 - bits))
