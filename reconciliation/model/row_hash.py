"""Spark's `xxhash64` of a row, for few rows: of the same record a cluster and this machine note the same number.

Source: `org.apache.spark.sql.catalyst.expressions.XXH64`, which is xxHash64 of each column, with the hash of those
before it for a seed; a null leaves the hash as it is. Seed of the first: 42.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final

SEED: Final = 42
PRIMES: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_P1, _P2, _P3, _P4, _P5 = PRIMES
_MASK: Final = (1 << 64) - 1


def row_hash(*columns: int | bytes | None) -> int:
    """Of 64-bit numbers and octets, as a signed number of 64 bits."""
    hashed = SEED
    for value in columns:
        if value is not None:
            octets = value.to_bytes(8, "little", signed=True) if isinstance(value, int) else value
            hashed = _xxhash64(octets, hashed)
    return hashed - (1 << 64) if hashed >> 63 else hashed


def _xxhash64(octets: bytes, seed: int) -> int:
    size = len(octets)
    stripes = size - size % 32
    hashed = (_of_stripes(octets, stripes, seed) if stripes else seed + _P5) + size & _MASK
    words = size - size % 8
    for (word,) in (unpack_from("<Q", octets, at) for at in range(stripes, words, 8)):
        hashed = _turned(hashed ^ _round(0, word), 27) * _P1 + _P4 & _MASK
    rest = words
    if size - words >= 4:
        (word,) = unpack_from("<I", octets, words)
        hashed = _turned(hashed ^ word * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
        rest += 4
    for octet in octets[rest:]:
        hashed = _turned(hashed ^ octet * _P5 & _MASK, 11) * _P1 & _MASK
    hashed = (hashed ^ hashed >> 33) * _P2 & _MASK
    hashed = (hashed ^ hashed >> 29) * _P3 & _MASK
    return hashed ^ hashed >> 32


def _of_stripes(octets: bytes, end: int, seed: int) -> int:
    """Of the octets below `end`, in stripes of 32."""
    first, second, third, fourth = seed + _P1 + _P2 & _MASK, seed + _P2 & _MASK, seed, seed - _P1 & _MASK
    for at in range(0, end, 32):
        words = unpack_from("<4Q", octets, at)
        first, second = _round(first, words[0]), _round(second, words[1])
        third, fourth = _round(third, words[2]), _round(fourth, words[3])
    hashed = _turned(first, 1) + _turned(second, 7) + _turned(third, 12) + _turned(fourth, 18) & _MASK
    for lane in (first, second, third, fourth):
        hashed = (hashed ^ _round(0, lane)) * _P1 + _P4 & _MASK
    return hashed


def _round(lane: int, word: int) -> int:
    return _turned(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def _turned(number: int, bits: int) -> int:
    """To the left, in 64 bits."""
    return (number << bits | number >> 64 - bits) & _MASK
