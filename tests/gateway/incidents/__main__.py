"""All incidents, one after another, each looked for in the command and on the page until both name it.

python -m tests.gateway.incidents [--only WORDS]

Prints a line each: how many seconds after it was made the command and the page named it. Exit code 1: one took longer
than 10 s. The realm is on a real Kafka; a full disk is an embedded realm's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.gateway.incidents.causes import ON_ANY_REALM, Cause, frozen_kafka, full_disk
from tests.gateway.incidents.site import Named, Site, opened_site
from tests.kit.processes.broker import start_broker
from tests.kit.processes.gateway import embedded_realm, kafka_realm
from tests.kit.processes.small_disk import small_disk

WITHIN_S = 10.0
GIVE_UP_S = 30.0
FROZEN, FULL = "a frozen Kafka", "a full disk"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.incidents")
    parser.add_argument("--only", metavar="WORDS", default="", help="incidents whose name has these words")
    only = parser.parse_args().only
    late = 0
    with tempfile.TemporaryDirectory() as directory:
        if any(only in name for name in (*ON_ANY_REALM, FROZEN)):
            late += _on_kafka(Path(directory), only)
        if only in FULL:
            with (
                small_disk(Path(directory) / "disk") as disk,
                opened_site(
                    Path(directory) / "full", embedded_realm(Path(directory) / "disk"), disk.environment
                ) as site,
            ):
                late += _one(FULL, full_disk(disk), site)
    return int(late > 0)


def _on_kafka(directory: Path, only: str) -> int:
    broker = start_broker(directory / "kafka")
    try:
        realm = kafka_realm(broker.bootstrap, "incidents")
        causes = {**ON_ANY_REALM, FROZEN: frozen_kafka(broker)}
        with opened_site(directory / "gateway", realm) as site:
            return sum(_one(name, cause, site) for name, cause in causes.items() if only in name)
    finally:
        broker.stop()


def _one(name: str, cause: Cause, site: Site) -> bool:
    """True: it was named too late."""
    with cause(site) as named:
        began_s = time.monotonic()
        took = [_until_named(look, named, began_s) for look in (site.command, site.page)]
    words = [f"{seconds:.1f} s" if seconds < GIVE_UP_S else "never" for seconds in took]
    sys.stdout.write(f"{name:<42} command {words[0]:>7}   page {words[1]:>7}\n")
    sys.stdout.flush()
    return max(took) > WITHIN_S


def _until_named(look: Callable[[], list[str]], named: Named, began_s: float) -> float:
    while (took_s := time.monotonic() - began_s) < GIVE_UP_S:
        if any(named.is_in(text) for text in look()):
            return time.monotonic() - began_s
        time.sleep(0.2)
    sys.stderr.write(f"{named}\n" + "\n".join(look()) + "\n")
    return took_s


if __name__ == "__main__":
    sys.exit(main())
