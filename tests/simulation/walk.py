"""The walk: what the clients, the network and the operator do next, at random."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from proton import Link

from tests.simulation.peers import bodies
from tests.simulation.peers.client import Client
from tests.simulation.peers.control import Control

if TYPE_CHECKING:
    from tests.simulation.world import World

QUEUES, CHANNELS = ("orders", "parcels"), ("news",)
_MODES = (Link.SND_UNSETTLED, Link.SND_SETTLED, Link.SND_MIXED)
_STATES = (
    "accepted", "accepted", "accepted", "released", "modified", "modified-failed", "modified-failed", "rejected",
    "modified-undeliverable", "modified-failed-undeliverable", "unstated",
)  # fmt: skip


_INSIDE = _STATES[:-1]  # what has no outcome is not stated inside a transaction


class Walk:
    """Chooses by weight; every choice is the seed's."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._links = 0
        self.messages = 0
        self.did: dict[str, int] = {}
        self._actions = {
            self._publish: 30,
            self._state: 30,
            self._credit: 18,
            self._attach: 8,
            self._detach: 2,
            self._drain: 3,
            self._deafen: 2,
            self._drop: 1.2,
            self._end_session: 0.5,
            self._goodbye: 0.5,
            self._kill: 0.7,
            self._stop: 0.5,
        }
        if world.shape.transactions:
            self._actions |= {self._transact: 120, self._attach: 16, self._stray: 1}
        self._names, self._weights = list(self._actions), list(self._actions.values())

    def step(self) -> None:
        """One action, by one client."""
        world = self._world
        client = self._random.choice(world.clients)
        if client.wire is None:
            client.connect(world.network, world)
            self._attach(client)
        [action] = self._random.choices(self._names, self._weights)
        name = action.__name__.strip("_")
        self.did[name] = self.did.get(name, 0) + 1
        action(client)
        client.flush()

    # -- clients

    def _attach(self, client: Client) -> None:
        random = self._random
        self._links += 1
        if len(client.senders) < (4 if self._world.shape.transactions else 2) and random.random() < 0.5:
            client.publish_to(f"p{self._links}", random.choice(QUEUES + CHANNELS), random.choice(_MODES))
            return
        if len(client.receivers) >= 3:
            return
        settled, second = random.random() < 0.15, random.random() < 0.3
        node = random.choice(QUEUES + CHANNELS)
        durable = node in CHANNELS and random.random() < 0.8
        name = random.choice(("d1", "d2")) if durable else f"s{self._links}"
        if name not in client.receivers:
            client.consume_from(name, node, durable=durable, settled=settled, second=second)
            client.receivers[name].flow(random.choice((1, 3, 20)))

    def _publish(self, client: Client) -> None:
        for name, sender in list(client.senders.items()):
            for _ in range(min(sender.credit, self._random.randint(0, 6)) or int(self._random.random() < 0.2)):
                self._send(client, name, sender.snd_settle_mode)

    def _send(
        self, client: Client, name: str, mode: int, control: Control | None = None, identity: bytes = b""
    ) -> None:
        random = self._random
        self.messages += 1
        settled = mode == Link.SND_SETTLED or (mode == Link.SND_MIXED and random.random() < 0.4)
        wrong = (not settled or control is not None) and random.random() < 0.03
        payload = bodies.rubbish(self.messages) if wrong else bodies.message(self.messages, random)
        client.publish(name, payload, settled=settled, control=control, identity=identity)

    def _state(self, client: Client) -> None:
        random = self._random
        count = random.randint(0, len(client.held))
        chosen = random.sample(client.held, count) if random.random() < 0.5 else client.held[:count]
        state = random.choice(_STATES)
        for held in chosen:
            client.held.remove(held)
            if random.random() < 0.2:
                state = random.choice(_STATES)
            client.state(held[1], state, settle=state == "unstated" or random.random() < 0.5)
        if client.asked and random.random() < 0.08:
            client.contradict(random.choice(client.asked))

    def _credit(self, client: Client) -> None:
        for receiver in client.receivers.values():
            if receiver.credit < 10:
                receiver.flow(self._random.randint(0, 8))

    def _drain(self, client: Client) -> None:
        for receiver in client.receivers.values():
            if self._random.random() < 0.5:
                receiver.drain(self._random.choice((0, 2, 5)))

    def _detach(self, client: Client) -> None:
        names = [*client.senders, *client.receivers]
        if client.controls and self._random.random() < 0.3:
            client.leave_control(self._random.choice(client.controls))
        elif names:
            client.leave(self._random.choice(names), for_good=self._random.random() < 0.5)

    def _deafen(self, client: Client) -> None:
        if client.wire is not None:
            client.wire.deaf = not client.wire.deaf

    def _drop(self, client: Client) -> None:
        if client.wire is not None:
            self._world.network.reset(client.wire)

    def _end_session(self, client: Client) -> None:
        client.end_session()

    def _goodbye(self, client: Client) -> None:
        client.close()

    # -- transactions

    def _transact(self, client: Client) -> None:
        """The next of what makes a transaction, on each control link."""
        random = self._random
        if not client.controls or random.random() < 0.03:
            self._links += 1
            client.control(f"t{self._links}")
        for control in list(client.controls):
            if control.idle:
                control.declare()
            elif control.id is not None:
                weights = (5, 4, 3 if control.said > 3 else 0.2)
                [step] = random.choices((self._post, self._retire, self._discharge), weights)
                step(client, control, control.id)
        if len([sender for sender in client.senders.values() if sender.session == client.controls[0].session]) < 2:
            self._attach(client)

    def _post(self, client: Client, control: Control, identity: bytes) -> None:
        for name, sender in list(client.senders.items()):
            if sender.session == control.session:
                for _ in range(min(sender.credit, self._random.randint(0, 4))):
                    self._send(client, name, sender.snd_settle_mode, control, identity)

    def _retire(self, client: Client, control: Control, identity: bytes) -> None:
        random = self._random
        held = [entry for entry in client.held if entry[0].session == control.session]
        for entry in random.sample(held, random.randint(0, len(held))):
            client.held.remove(entry)
            control.retire(entry, random.choice(_INSIDE), identity, settle=random.random() < 0.4)

    def _discharge(self, _: Client, control: Control, __: bytes) -> None:
        if control.link.credit > 0:
            control.discharge(fail=self._random.random() < 0.25)

    def _stray(self, client: Client) -> None:
        """Something in a transaction that is not there."""
        random = self._random
        for control in client.controls[:1]:
            kind = random.randrange(3)
            senders = [name for name, sender in client.senders.items() if sender.credit > 0]
            if kind == 0 and not control.asked and control.link.credit > 0:
                control.discharge(fail=False, identity=b"nowhere")
            elif kind == 1 and senders:
                name = random.choice(senders)
                self._send(client, name, client.senders[name].snd_settle_mode, control, b"nowhere")
            elif kind == 2 and client.held:
                control.retire(client.held.pop(), "accepted", b"nowhere", settle=True)

    # -- the operator

    def _kill(self, _: Client) -> None:
        self._world.restart(in_order=False)

    def _stop(self, _: Client) -> None:
        self._world.restart(in_order=True)
