"""The PROXY protocol, version 2: a proxy in front says, before the first octet of its client, where that client is.

A listener that has `proxies` takes connections from these networks alone, for the header may claim any address. Each
has to begin with it, before TLS and SASL. So the client's address is what the log, the facts, the shares and the
throttle of logins see. Octets, seconds.

Only TCP over IPv4 and IPv6 is taken, and LOCAL, the proxy's own connection (a health check), which keeps the proxy's
address. TLVs are passed over. Source: The PROXY protocol, 2.2 (HAProxy, 2020). Errors: none; what cannot be read closes
the socket, and `failed` gets the address and the reason.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from gateway.config.proxied_listener import Network
from gateway.server.half_open import HalfOpenSockets
from gateway.server.handshake import address_of
from gateway.server.layer import Layer

SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
LENGTH_MAX: Final = 2_048  # of what follows the first 16 octets: addresses have 36, the rest is TLVs
HEADER_S: Final = 3.0  # from the socket to the end of its header: a proxy sends it at once
_PREAMBLE: Final = struct.Struct(">12sBBH")  # signature, version and command, family and transport, length
_VERSION, _LOCAL, _PROXY = 2, 0, 1
_ADDRESSES: Final = {0x11: struct.Struct(">4s4sHH"), 0x21: struct.Struct(">16s16sHH")}  # TCP over IPv4, over IPv6


class HeaderFault(Exception):
    """Octets that are no header that is taken; in words."""


@dataclass(frozen=True, slots=True)
class Header:
    """`client`: its address and port; None: the connection is the proxy's own. `size`: of the header."""

    client: tuple[str, int] | None
    size: int


def read_header(octets: bytes) -> Header | None:
    """None: more has to come. Raises HeaderFault, at the first octet that shows it."""
    if octets[: len(SIGNATURE)] != SIGNATURE[: len(octets)]:
        raise HeaderFault("it does not begin with the PROXY protocol's version 2")
    if len(octets) < _PREAMBLE.size:
        return None
    _, version_and_command, family, length = _PREAMBLE.unpack_from(octets)
    version, command = version_and_command >> 4, version_and_command & 15
    if version != _VERSION or command not in (_LOCAL, _PROXY):
        raise HeaderFault(f"a header of version {version} with command {command}")
    addresses = _ADDRESSES.get(family)
    if command == _PROXY and addresses is None:
        raise HeaderFault(f"a header for family and transport {family:#04x}, and not TCP over IPv4 or IPv6")
    if length > LENGTH_MAX or (command == _PROXY and addresses is not None and length < addresses.size):
        raise HeaderFault(f"a header of {length} octets")
    size = _PREAMBLE.size + length
    if len(octets) < size:
        return None
    if command == _LOCAL or addresses is None:
        return Header(None, size)
    source, _, port, _ = addresses.unpack_from(octets, _PREAMBLE.size)
    return Header((str(_plain(ip_address(source))), port), size)


class ProxyLayer(Layer):
    """Nothing above has a connection before the header is read. A socket that has none yet is half open."""

    def __init__(
        self,
        above: asyncio.Protocol,
        proxies: Sequence[Network],
        half_open: HalfOpenSockets,
        failed: Callable[[str, str], None],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """`loop`: the one that runs, if not given."""
        super().__init__(above)
        self._proxies = proxies
        self._half_open = half_open
        self._failed = failed
        self._loop = loop or asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._head = b""
        self._is_read = False
        self._client: tuple[str, int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.below = transport  # type: ignore[assignment]
        if not is_within(address_of(self.below), self._proxies):
            self._fail("it is none of the listener's proxies")
        elif self._half_open.enter(self, address_of(self.below)):
            self._timer = self._loop.call_later(HEADER_S, self._fail, f"no whole header within {HEADER_S:.0f} s")
        else:
            self.below.abort()

    def data_received(self, data: bytes) -> None:
        if self._is_read:
            self.above.data_received(data)
            return
        if self.below.is_closing():
            return
        self._head += data
        try:
            header = read_header(self._head)
        except HeaderFault as fault:
            self._fail(str(fault))
            return
        if header is None:
            return
        rest, self._head = self._head[header.size :], b""
        self._is_read, self._client = True, header.client
        self._leave()
        self.above.connection_made(self)
        if rest and not self.below.is_closing():
            self.above.data_received(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        if self._is_read:
            super().connection_lost(exc)

    def _fail(self, reason: str) -> None:
        self._leave()
        self._failed(address_of(self.below), reason)
        self.below.abort()

    def _leave(self) -> None:
        """It is no half-open socket of the proxy's any more."""
        self._half_open.leave(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "peername" and self._client is not None:
            return self._client
        return super().get_extra_info(name, default)


def is_within(address: str, networks: Sequence[Network]) -> bool:
    try:
        known = _plain(ip_address(address.partition("%")[0]))
    except ValueError:
        return False
    return any(known in network for network in networks)


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """One of IPv4 that is written as one of IPv6 is one of IPv4."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
