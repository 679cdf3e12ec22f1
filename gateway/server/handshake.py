"""The entrance: one socket's SASL negotiation on the loop, with its waits and its work on another thread.

May import: `gateway.certificate_names`, `gateway.doorkeeper`, `gateway.mechanisms`, `gateway.sasl`,
`gateway.settings`, `native_backend.access`, asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from gateway.certificate_names import names
from gateway.doorkeeper import Doorkeeper
from gateway.mechanisms import Denied, Granted
from gateway.sasl import Hold, SaslServer, State
from gateway.settings import Security
from native_backend.access import Subject


def sasl_server(security: Security, keeper: Doorkeeper, transport: asyncio.Transport) -> SaslServer:
    """For the peer on that transport: what it is offered depends on whether it came by TLS."""
    address = str((transport.get_extra_info("peername") or ("",))[0])
    offered = security.offered(transport.get_extra_info("ssl_object") is not None)
    door = keeper.door(address)
    return SaslServer(offered, security.bare_amqp, door, lambda: names(transport.get_extra_info("peercert")))


class Entrance:
    """`entered` is called once, with who the peer is and what it sent for AMQP; or the socket closes."""

    def __init__(
        self,
        sasl: SaslServer,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        workers: Executor,
        entered: Callable[[Subject, bytes], None],
        refused: Callable[[], None],
    ) -> None:
        self._sasl = sasl
        self._transport = transport
        self._loop = loop
        self._workers = workers
        self._entered = entered
        self._refused = refused

    def receive(self, data: bytes) -> None:
        held = self._sasl.hold
        self._tell(*self._sasl.receive(data))
        if self._sasl.hold is not held and self._sasl.hold is not None:
            self._loop.call_later(self._sasl.hold.delay_s, self._work, self._sasl.hold)

    def _work(self, hold: Hold) -> None:
        if self._transport.is_closing():  # hung up: its turn is spent
            return
        if hold.job is None:
            self._proceed(None)
        else:
            self._loop.run_in_executor(self._workers, hold.job).add_done_callback(
                lambda done: self._proceed(done.result())
            )

    def _proceed(self, outcome: Granted | Denied | None) -> None:
        """Also when the peer has hung up: a failure counts."""
        if self._sasl.hold is not None:
            self._tell(*self._sasl.proceed(outcome))

    def _tell(self, to_send: bytes, rest: bytes, state: State) -> None:
        if self._transport.is_closing():
            return
        if to_send:
            self._transport.write(to_send)
        if state == "refused":
            self._transport.close()
            self._refused()
        elif state == "authenticated":
            self._entered(self._sasl.subject, rest)
