"""The entrance: one socket's SASL negotiation on the loop, with its waits and its work on another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from gateway.auth.authenticator import Login
from gateway.auth.certificate_names import names
from gateway.auth.sasl import PendingStep, SaslServer, State
from gateway.auth.step import Denied, Granted
from gateway.config.settings import Security
from native_backend.nodes.grants import Subject


def sasl_server(security: Security, login: Login, transport: asyncio.Transport) -> SaslServer:
    """For the peer on that transport: what it is offered depends on whether it came by TLS."""
    offered = security.offered(transport.get_extra_info("ssl_object") is not None)
    return SaslServer(offered, security.bare_amqp, login, lambda: names(transport.get_extra_info("peercert")))


def address_of(transport: asyncio.BaseTransport) -> str:
    """The peer's, without its port; empty where it has none."""
    return str((transport.get_extra_info("peername") or ("",))[0])


class SaslHandshake:
    """`refused` hears whether the peer had said who it is.
    `entered` is called once, with who the peer is and what it sent for AMQP; or the socket closes."""

    def __init__(
        self,
        sasl: SaslServer,
        login: Login,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        workers: Executor,
        entered: Callable[[Subject, bytes], None],
        refused: Callable[[bool], None],
    ) -> None:
        self._sasl = sasl
        self._login = login
        self._transport = transport
        self._loop = loop
        self._workers = workers
        self._entered = entered
        self._refused = refused
        self._works = False  # its turn has come

    def receive(self, data: bytes) -> None:
        held = self._sasl.pending
        self._tell(*self._sasl.receive(data))
        if self._sasl.pending is not held and self._sasl.pending is not None:
            self._login.enter(self._sasl.pending.user, partial(self._work, self._sasl.pending), self._turn_away)

    def _work(self, pending: PendingStep) -> None:
        self._works = True
        if pending.job is None:
            self._proceed(None)
        else:
            self._loop.run_in_executor(self._workers, pending.job).add_done_callback(self._worked)

    def _worked(self, done: asyncio.Future[Granted | Denied]) -> None:
        try:
            outcome = done.result()
        except BaseException:  # we are wrong, or the gateway stops: others have their turn
            self._transport.abort()
            self._login.leave()
            raise
        self._proceed(outcome)

    def _proceed(self, outcome: Granted | Denied | None) -> None:
        """Also when the peer has hung up: a failure counts."""
        if self._sasl.pending is not None:
            self._tell(*self._sasl.proceed(outcome))
        self._login.leave()

    def _turn_away(self) -> None:
        if self._sasl.pending is not None:
            self._tell(*self._sasl.turn_away())

    def hung_up(self) -> None:
        """The socket has gone. An attempt that is being heard is heard to its end."""
        if not self._works:
            self._login.leave()

    def _tell(self, to_send: bytes, rest: bytes, state: State) -> None:
        if self._transport.is_closing():
            return
        if to_send:
            self._transport.write(to_send)
        if state == "refused":
            self._transport.close()
            self._refused(self._sasl.entered)
        elif state == "authenticated":
            self._entered(self._sasl.subject, rest)
