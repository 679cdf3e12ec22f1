"""Questions to Spark beside each other: while it plans and compiles one, it answers another.

For questions that read few rows. Those that read all of them have both cores to do already, and take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Protocol, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

Answer = TypeVar("Answer")

_AT_ONCE = 3


class Ask(Protocol):
    def __call__(self, question: Callable[[], Answer], /) -> Callable[[], Answer]:
        """Returns what waits for the answer."""


@contextmanager
def beside(spark: SparkSession, *, at_once: bool) -> Iterator[Ask]:
    """`at_once`: questions are asked as soon as they are given; otherwise when their answer is wanted. One that fails
    says so to who waits for it; what is still asked when one leaves by an error is given up."""
    if not at_once:
        yield cache
        return
    with ThreadPoolExecutor(_AT_ONCE, "asks-spark") as threads:
        try:
            yield lambda question: threads.submit(question).result
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            with suppress(Py4JError, OSError):  # the session may be why
                spark.sparkContext.cancelAllJobs()
            raise
