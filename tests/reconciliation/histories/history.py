"""A history at random in which nothing is wrong: clients, commands of operators, reloads, kills. A seed is a history,
but for what happens at the same time."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Thread
from time import sleep
from typing import Any, Final

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.tables.renamed import Tables
from tests.kit.wire.noted import STATES
from tests.reconciliation.histories.clients import GONE, Client

QUEUES: Final = ("work", "levels", "brief", "full", "evicting", "slow", "dead")
CHANNELS: Final = ("news", "few-news")
SUBSCRIPTIONS: Final = {"all": "", "red": "colour = 'red'"}
"""Selectors, by the name of the subscription."""
_MANY, _FEW = 12, 4
_READER: Final = "reader"
"""The container-id of all that subscribe, one after another."""


class History:
    """Of a gateway that is made, and not started. `partitions`: of the nodes that have several."""

    def __init__(self, seed: int, gateway: GatewayProcess, ledgers: Path, partitions: int) -> None:
        self.done: Counter[str] = Counter()
        self._gateway, self._ledgers, self._partitions = gateway, ledgers, str(partitions)
        self._chance, self._clients, self._messages = Random(seed), 0, 0
        self._durables = set[tuple[str, str]]()
        self._tables = Tables(gateway.config_path.with_name("tables-of-its-own"))
        gateway.settings["mappings"] = {"dir": str(self._tables.directory)}

    def live(self, steps: int) -> None:
        self._gateway.start()
        self._create()
        for _ in range(steps):
            step = self._chance.choice(self._steps())
            self.done[step.__name__.strip("_")] += 1
            step()
        assert self._gateway.stop() == 0, self._gateway.log()

    def _create(self) -> None:
        letters = ("--dead-letter", "dead", "--attempts", "3")
        for name, more in {
            "dead": (),
            "work": (*letters, "--partitions", self._partitions),
            "levels": (*letters, "--priority-levels", "3"),
            "brief": (*letters, "--ttl", "1s"),
            "full": ("--capacity-events", "5", "--honour-capacity", "true"),
            "evicting": ("--capacity-events", "5", "--honour-capacity", "false"),
            "slow": (*letters, "--redelivery-delay", "1s"),
            "news": ("--kind", "channel", "--partitions", self._partitions),
            "few-news": ("--kind", "channel", "--ttl", "1s"),
        }.items():
            self._gateway.command("node", "create", name, *more)

    def _steps(self) -> list[Callable[[], None]]:
        often = [self._publish, self._consume, self._subscribe, self._transact] * 3
        return [*often, self._purge, self._move, self._resend, self._seek, self._delete, self._reload, self._restart,
                self._kill, self._kill, self._wait]  # fmt: skip

    def _client(self, what: str, container: str = "") -> Client:
        self._clients += 1
        name = f"{what}-{self._clients}"
        return Client(self._gateway.address, self._ledgers, name, container or name)

    def _names(self, count: int) -> list[str]:
        first, self._messages = self._messages, self._messages + count
        return [f"m-{number}" for number in range(first, first + count)]

    def _publish(self) -> None:
        node = self._chance.choice([*QUEUES[:-1], *CHANNELS])
        self._client("shop").publish(node, self._names(self._chance.randint(1, _MANY)), self._chance)

    def _states(self) -> list[str]:
        return self._chance.choices([*STATES], weights=[5, 1, 1, 1], k=self._chance.randint(1, _MANY))

    def _consume(self) -> None:
        node = self._chance.choice([*QUEUES, *CHANNELS])
        self._client("desk").consume(node, self._states())

    def _subscribe(self) -> None:
        """Again and again under the same names: what was not given waits for it."""
        node, name = self._chance.choice(CHANNELS), self._chance.choice([*SUBSCRIPTIONS])
        self._durables.add((node, name))
        self._client("reader", _READER).consume(node, self._states(), name, SUBSCRIPTIONS[name])

    def _transact(self) -> None:
        source, target = self._chance.choice(QUEUES[:2]), self._chance.choice(["work", "news", "full"])
        names, commit = self._names(self._chance.randint(1, _FEW)), self._chance.random() < 0.7
        self._client("till").transact(source, self._chance.randint(1, _FEW), target, names, commit=commit)

    def _purge(self) -> None:
        self._gateway.command("queue", "purge", self._chance.choice(QUEUES), "--yes")

    def _move(self) -> None:
        source, target = self._chance.sample([*QUEUES[:3], "slow"], 2)
        self._gateway.command("queue", "move", source, "--to", target, "--count", str(_FEW), "--yes")

    def _resend(self) -> None:
        self._gateway.command("queue", "resend", "dead", "--to-origin", "--yes")

    def _seek(self) -> None:
        for node, name in sorted(self._durables)[:1]:
            place = self._chance.choice(["beginning", "end"])
            self._gateway.command("durable", "seek", node, f"{_READER}:{name}", "--to", place, "--yes")

    def _delete(self) -> None:
        if self._durables and self._chance.random() < 0.5:
            node, name = self._chance.choice(sorted(self._durables))
            self._gateway.command("durable", "delete", node, f"{_READER}:{name}", "--yes")
            self._durables.remove((node, name))

    def _reload(self) -> None:
        digest = self._tables.rename(self._chance.randrange(10**9))
        assert self._gateway.process is not None
        self._gateway.process.send_signal(signal.SIGHUP)
        self._gateway.await_log(f"tables {digest} are active")

    def _restart(self) -> None:
        assert self._gateway.stop() == 0, self._gateway.log()
        self._gateway.start()

    def _kill(self) -> None:
        """While clients publish, consume and transact."""
        chance, states = Random(self._chance.random()), self._states() * 4
        names, others = self._names(_MANY * 4), self._names(_FEW)
        work: list[Callable[..., Any]] = [
            lambda: self._client("shop").publish("work", names, chance),
            lambda: self._client("desk").consume("work", states),
            lambda: self._client("till").transact("work", _FEW, "levels", others, commit=True),
        ]
        threads = [Thread(target=_until_it_goes, args=(what,)) for what in work]
        for thread in threads:
            thread.start()
        sleep(self._chance.uniform(0.0, 0.4))
        self._gateway.kill()
        for thread in threads:
            thread.join()
        self._gateway.start()

    def _wait(self) -> None:
        """Some messages expire, others come to be due."""
        sleep(self._chance.uniform(0.3, 1.2))


def _until_it_goes(work: Callable[[], None]) -> None:
    with suppress(*GONE):
        work()
