"""Where the cases run: a real Kafka node or an SQLite file, each on an empty directory; and what they measure with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from native_backend.limits import RealmLimits
from tests.kit.processes.broker import start_broker
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import KafkaWorld, SqliteWorld, World

DIRECTORY = Path(__file__).parent.parent.parent / ".cache" / "scale"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
Start = Callable[..., RealmProcess]


@contextmanager
def empty_world(realm: str) -> Iterator[tuple[World, list[int]]]:
    """`kafka` or `embedded`, empty, and the processes that are no child of this one."""
    directory = DIRECTORY / realm
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    if realm == "embedded":
        embedded = SqliteWorld(directory)
        yield embedded, []
        embedded.close()
    else:
        broker = start_broker(directory)
        try:
            kafka = KafkaWorld(broker.bootstrap)
            yield kafka, [broker.pid]
            kafka.close()
        finally:
            broker.stop()
    shutil.rmtree(directory, ignore_errors=True)


def opened(world: World, limits: RealmLimits | None = None) -> RealmProcess:
    """A realm of this process on the world; every case has a prefix of its own by living in a world of its own."""
    return RealmProcess(world, "scale", limits).open()


def resident_mb() -> float:
    """Of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
