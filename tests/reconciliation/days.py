"""A realm that is reconciled day by day, with the state of the day before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from native_backend.log.open import open_embedded
from native_backend.nodes.node import Node
from reconciliation.model.folder import LocalFolder
from reconciliation.model.settings import Realm
from reconciliation.read import increments, landing
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import START_US, GatewayRun, World

BY_SUMS = "Judged from the sums of its increments."
BY_ROWS = "Judged from all rows, not from sums: "


def said(result: Result) -> tuple[bytes, list[dict[str, Any]], int]:
    """All that a reconciliation leaves, but for the line that says how it came to it: octets of the manifest, rows."""
    return (result.out / "manifest.json").read_bytes(), sorted(result.rows(), key=str), result.code


def day(world: World, run: GatewayRun, orders: Node) -> None:
    """Some are acknowledged, one is left."""
    sent = run.publish(orders, 4)
    run.turn()
    run.settle(orders, sent[:3], "accepted")
    run.turn()
    run.attest()


class Days:
    """`session`, `reconcile`: None where nothing is asked of Spark, and nothing judged."""

    def __init__(self, directory: Path, reconcile: Reconcile | None, session: Any) -> None:
        self.directory, self._reconcile, self._session = directory, reconcile, session
        self.state = directory / "state"
        self.realm = Realm("embedded", "um", path=directory / "realm")
        self._world: World | None = None
        open_embedded(directory / "realm").close()

    def add(self, days: int, more: Callable[[World, GatewayRun, Node], None] = day) -> None:
        with closing(open_embedded(self.directory / "realm")) as log:
            if self._world is None:
                self._world = World(log, "um")
                self._orders = self._world.queue("orders")
            world = self._world
            world.log = log
            log.control.claim(world.shard)
            for _ in range(days):
                run = world.run()
                more(world, run, self._orders)
                run.close()
                run.attest()

    def judged(self, **more: Any) -> Result:
        assert self._reconcile is not None
        return self._reconcile(self.realm, state=self.state, **more)

    def landed(self) -> increments.Increment:
        """Read, and not judged yet."""
        extent = landing.extent_of(self.realm)
        return increments.land(self.realm, extent, self._session, LocalFolder(self.state), START_US)

    def trim(self, topic: str, offset: int) -> None:
        with closing(open_embedded(self.directory / "realm")) as log:
            log.control.trim(topic, 0, offset)

    def end(self, kind: str) -> int:
        with closing(open_embedded(self.directory / "realm")) as log:
            return log.control.bounds(f"um.{kind}", 0)[1]

    def kept(self) -> tuple[str, bytes]:
        """The state that is in force."""
        name = increments.newest(LocalFolder(self.state))
        return name, (self.state / name).read_bytes()

    def links(self) -> set[str]:
        return {link.name.removeprefix("link=") for link in (self.state / "links").iterdir()}

    @property
    def topic(self) -> str:
        return self._orders.topic
