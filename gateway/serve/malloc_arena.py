"""Has glibc's malloc keep what a process takes in one arena."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8  # of glibc's malloc.h


def use_one_arena() -> None:
    """One malloc arena for all threads: what Kafka's threads take and this one gives back would stay resident."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 1)
