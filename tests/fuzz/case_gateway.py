"""The gateway of a case: one of its own on a realm of its own, in this process and without sockets, and a witness that
is served all the while.

A turn is what `server.py` makes of one. `CaseGateway(case.gateway).carry_out(case)` raises `Wrong` with what was found:
an exception, something logged as an error, an output that is no AMQP or larger than the peer can read, a witness that
is not served, or anything that is left over when every peer has gone. It is built in a millisecond.
"""

from __future__ import annotations

import logging
import struct
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

from cproton import lib

from gateway.auth.sasl import SaslServer
from gateway.config.limits import Limits
from gateway.config.settings import EmbeddedRealm, MappingSettings, NodeSettings, Security, Settings
from gateway.session.gateway import Gateway
from mappings import TableSet, load_tables
from mappings.language.vocabulary import CONDITIONS
from native_backend.log.simulated.worker import InlineWorker
from native_backend.log.worker import Workers
from native_backend.nodes.answers import Answer, NodeFound
from native_backend.nodes.node import Node
from native_backend.realm import Realm
from native_backend.state.mistakes import ALARM
from tests.fuzz.steps import Case, Step
from tests.fuzz.web import Web
from tests.kit.realm.life import Life
from tests.kit.realm.realm_process import WorldClock
from tests.kit.realm.worlds import SimulatedWorld
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.scripted_realm import ScriptedRealm
from transformers.codec import DecodeError, decode

NODES = {"q": "queue", "c": "channel", "case.witness": "queue"}
STORED = 8  # events in the queue, from the beginning
LEAST_FRAME = 512
QUIET_TURNS = 3
TURNS_MAX = 500
_SMALL = {
    "frame_size_bytes": 512,
    "message_size_bytes": 2_000,
    "credit_per_link": 5,
    "in_flight": 40,
    "links": 12,
    "links_per_session": 4,
    "sessions_per_connection": 3,
    "unsettled_per_link": 4,
    "transaction_bytes": 1_000,
    "transaction_deliveries": 5,
    "selector_characters": 60,
    "write_buffer_bytes": 1024,
}
GATEWAYS: dict[str, tuple[dict[str, int], str, str]] = {  # limits, profile, transformer
    "plain": ({}, "extended", "basic"),
    "small": (_SMALL, "extended", "basic"),
    "complete": ({}, "um-9.10", "complete"),
    "documented": ({}, "um-9.12", "basic"),
    "web": ({}, "extended", "basic"),  # by WebSocket
}


class Wrong(Exception):
    """What a case has found: the first line says what, the rest where."""


class Complaints(logging.Handler):
    """Whatever the gateway logs as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        trace = "".join(traceback.format_exception(error)) if error is not None else ""
        self.said.append(f"{trace.strip().splitlines()[-1] if trace else record.getMessage()}\n{trace}")


COMPLAINTS = Complaints()


def listen_to_logs() -> None:
    """Once a process."""
    root = logging.getLogger("realmgate")
    root.propagate = False
    root.handlers = [COMPLAINTS]


@cache
def tables_of(profile: str) -> TableSet:
    return load_tables(profile=profile)


class Wire:
    """One peer's socket, the gateway's side of it."""

    def __init__(self, gateway: Gateway, web: bool = False) -> None:
        security = gateway.settings.security
        self._web = Web(self._take) if web else None
        self.sasl: SaslServer | None = SaslServer(security.sasl, security.bare_amqp)
        self.connection = gateway.connect()
        self.gateway = gateway
        self.open = True
        self.stalled = False
        self.unread = 0
        self._rest = b""
        self._spoken = False

    def receive(self, data: bytes) -> None:
        if self._web is None:
            self._take(data)
        elif not self._web.receive(data):
            self.lose()

    def _take(self, data: bytes) -> None:
        if self.sasl is None:
            if self.open:
                self.connection.receive(data)
            return
        _, rest, state = self.sasl.receive(data)
        while state == "held":
            pending = self.sasl.pending
            assert pending is not None
            _, rest, state = self.sasl.proceed(pending.job() if pending.job is not None else None)
        if state == "refused":
            self.lose()
        elif state == "authenticated":
            self.sasl = None
            if rest:
                self.connection.receive(rest)

    def send(self) -> None:
        connection = self.connection
        for piece in connection.data_to_send():
            self._heard(bytes(piece))
            if self._web is not None:
                self._web.write(bytes(piece))
        if self.stalled:
            connection.write_pressure.set_congested(self.unread > self.gateway.limits.write_buffer_bytes)
        if connection.closing and connection.engine.finished:
            self.lose()

    def _heard(self, piece: bytes) -> None:
        """Everything the gateway says is AMQP, frame by frame, and fits."""
        self.unread += len(piece) if self.stalled else 0
        self._rest += piece
        if not self._spoken and len(self._rest) >= 8:
            if self._rest[:8] != frames.AMQP_HEADER:
                raise Wrong(f"said {self._rest[:8].hex()} for a header")
            self._spoken, self._rest = True, self._rest[8:]
        while self._spoken and len(self._rest) >= 8:
            size, doff, kind, _ = struct.unpack_from(">IBBH", self._rest)
            if size < 8 or doff != 2 or kind != 0 or size > max(LEAST_FRAME, self._their_max()):
                raise Wrong(f"said a frame of size {size}, head {doff} {kind}; the peer reads {self._their_max()}")
            if len(self._rest) < size:
                return
            if size > 8:
                self._decoded(self._rest[8:size])
            self._rest = self._rest[size:]

    def _decoded(self, body: bytes) -> None:
        try:
            value, _ = decode(body)
        except DecodeError as error:
            raise Wrong(f"said a frame that cannot be decoded: {error}\n{body[:200].hex()}") from error
        if value.descriptor not in frames.NAMES:
            raise Wrong(f"said a performative 0x{value.descriptor:x}")
        seen = Seen(0, frames.NAMES[value.descriptor], value.value, b"")
        condition = seen.condition if seen.name in ("detach", "end", "close") else None
        if condition is not None and condition not in CONDITIONS:
            raise Wrong(f"said the condition {condition!r}, which AMQP does not define")

    def _their_max(self) -> int:
        return int(lib.pn_transport_get_remote_max_frame(self.connection.engine._transport)) or 0xFFFFFFFF

    def lose(self) -> None:
        if self.open:
            self.open = False
            if self._web is not None:
                self._web.close()
            self.gateway.disconnect(self.connection)

    @property
    def kept(self) -> int:
        """Octets of a frame that is not whole yet."""
        return len(self.connection.engine.frame_reader._rest)


class CaseGateway:
    """See the module's docstring."""

    def __init__(self, gateway: str) -> None:
        limits, profile, transformer = GATEWAYS[gateway]
        self._web = gateway == "web"
        COMPLAINTS.said.clear()
        self.world = SimulatedWorld("simulated")
        tables, clock = tables_of(profile), WorldClock(self.world)
        control = InlineWorker(lambda _: self.world.pass_time())
        run = ScriptedRealm.run  # the run in which the corpus was recorded: its transactions are known here
        self.log = self.world.open()
        self.realm = Realm(self.log, "fuzz", run, clock, Workers(control, control, control), liveness=Life(run))
        self.realm.open()
        finder = Finder()
        for name, kind in NODES.items():
            self.realm.create_node(name, kind, finder)  # type: ignore[arg-type]
        while "q" not in finder.found:
            self._told(self.realm.poll())
        self.realm.publish(finder.found["q"], [b"1;none;r;1"] * STORED, [frames.message()] * STORED, finder)
        settings = Settings(
            (), EmbeddedRealm(Path("nowhere")), MappingSettings(profile, None), NodeSettings(("any.*",)),
            Security(("PLAIN", "SCRAM-SHA-256", "ANONYMOUS"), True), Limits(**limits), transformer,
        )  # fmt: skip
        self.gateway = Gateway(settings, self.realm, tables, clock)
        self.gateway.on_broken = lambda owner: None  # it is logged, and so it is found
        self.wires: dict[int, Wire] = {}
        self._of: dict[Any, Wire] = {}
        self.turns(QUIET_TURNS)
        self.witness = Witness(self)

    def _told(self, answers: list[Answer]) -> None:
        for answer in answers:
            answer.owner.answered(answer)

    # -- what peers do

    def carry_out(self, case: Case) -> None:
        try:
            for step in case.steps:
                self._do(step)
                self._look()
            self.witness.is_served("while the others are there")
            for wire in self.wires.values():
                wire.lose()
            self.turns(QUIET_TURNS)
            self.witness.is_served("when the others have gone")
            self._nothing_left()
        except Wrong:
            raise
        except Exception as error:
            raise Wrong(f"{type(error).__name__}: {error}\n{traceback.format_exc()}") from error
        finally:
            for connection in list(self.gateway.connections):
                connection.engine.free()
        self._look()

    def _do(self, step: Step) -> None:
        wire = self.wires.get(step.connection)
        if wire is None:
            if step.verb != "send":
                return
            wire = self.wires[step.connection] = self.connect(self._web)
        if not wire.open and step.verb != "pass":
            return
        if step.verb == "send":
            wire.receive(step.data)
        elif step.verb == "lose":
            wire.lose()
        elif step.verb == "stall":
            wire.stalled = True
        elif step.verb == "read":
            wire.stalled = False
            wire.connection.write_pressure.set_congested(False)
            wire.unread = 0
        elif step.verb == "pass":
            self._pass(step.seconds)
        self.turns(QUIET_TURNS)

    def _pass(self, seconds: int) -> None:
        for _ in range(seconds):
            self.world._now_ms += 1000
            for wire in list(self._of.values()):
                if wire.open and wire is not self.witness.wire:
                    wire.connection.tick(self.gateway.clock.monotonic_s())
            self.turns(1)

    def connect(self, web: bool = False) -> Wire:
        wire = Wire(self.gateway, web)
        self._of[wire.connection] = wire
        return wire

    def turns(self, least: int, until: Callable[[], bool] = lambda: True) -> bool:
        """So many turns at least, and on until it is reached or `TURNS_MAX`."""
        for turn in range(TURNS_MAX):
            if turn >= least and until():
                return True
            self.gateway.poll()
            self._flush()
            self.world.pass_time()
        return until()

    def _flush(self) -> None:
        touched = self.gateway.touched
        while touched:
            connection, _ = touched.popitem()
            wire = self._of.get(connection)
            if wire is not None and wire.open:
                wire.send()
            if wire is not None and not wire.open:
                del self._of[connection]

    # -- what must be true

    def _look(self) -> None:
        if COMPLAINTS.said:
            raise Wrong(COMPLAINTS.said[0])
        if self.realm.metrics.alarms[ALARM]:
            raise Wrong("an assertion was counted and not logged")
        kept = max((wire.kept for wire in self.wires.values() if wire.open), default=0)
        if kept > self.gateway.limits.frame_size_bytes:
            raise Wrong(f"keeps {kept} octets of a frame")

    def _nothing_left(self) -> None:
        gateway = self.gateway
        self.turns(QUIET_TURNS, lambda: gateway.outcomes.open == 0 and gateway.in_flight_bytes == 0)
        left = {
            "connections": len(gateway.connections) - 1,
            "links": gateway.links - self.witness.links,
            "link names": len(gateway.link_names) - self.witness.links,
            "octets in flight": gateway.in_flight_bytes,
            "transactions": gateway.transactions,
            "octets in transactions": gateway.transaction_bytes,
            "deliveries without an outcome": gateway.outcomes.open,
            "credit accounts": len(gateway.credit._accounts) - 1,
            "ready links": sum(
                link.connection is not self.witness.wire.connection for link in cast(Any, gateway.ready)
            ),
        }
        if any(left.values()):
            raise Wrong(f"left over: { ({what: count for what, count in left.items() if count}) }")


class Finder:
    """Who made the nodes."""

    def __init__(self) -> None:
        self.found: dict[str, Node] = {}

    def answered(self, answer: Answer) -> None:
        if isinstance(answer, NodeFound) and answer.node is not None:
            self.found[answer.node.name] = answer.node


class Witness:
    """A connection that publishes to a queue and consumes from it, whatever the others do."""

    links = 2

    def __init__(self, subject: CaseGateway) -> None:
        self._subject = subject
        self._seen: list[frames.Seen] = []
        self._sent = 0
        self.wire = subject.connect()
        self.wire._heard = self._heard  # type: ignore[method-assign]
        attach = frames.attach_receiver("case.witness") + frames.flow(1, 1_000)
        hello = frames.AMQP_HEADER + frames.open_("case.witness") + frames.begin()
        self.wire.receive(hello + frames.attach_sender("case.witness", handle=0) + attach)
        if not subject.turns(2, lambda: sum(seen.name == "attach" for seen in self._seen) == self.links):
            raise Wrong(f"the witness could not attach: {self._seen}")

    def _heard(self, piece: bytes) -> None:
        self._seen += frames.read(piece.removeprefix(frames.AMQP_HEADER))[0]

    def is_served(self, when: str) -> None:
        self._seen.clear()
        body = f"witness {self._sent}".encode()
        self.wire.receive(frames.transfer(self._sent, frames.message(body)))
        self._sent += 1

        def served() -> bool:
            names = [seen.name for seen in self._seen]
            return "disposition" in names and any(body in seen.payload for seen in self._seen)

        if not self._subject.turns(1, served):
            raise Wrong(f"the witness was not served {when}: {self._seen}")
        number = next(seen.field(1) for seen in self._seen if seen.name == "transfer")
        self.wire.receive(frames.disposition(number, number, frames.state("accepted")))
