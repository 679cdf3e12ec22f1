"""The source of a link to a durable: on what terms it is asked for, what name the durable has, and what our ATTACH says
of it.

A durable is named `CONTAINER:SUBSCRIPTION`, one that all containers share (the capability `global`) `:SUBSCRIPTION`;
what stands behind a bar in a link's name tells the links of one subscription apart. A shared subscription without
durability has a name that no durable one can have: `...|volatile`. A durable source that names no expiry policy never
expires, and is told so. Source: semantics.md 2.L, 3.3 (Qpid JMS); ADR 0044. May import: `gateway.origins`,
`gateway.termini`, `native_backend.terms`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.origins import NO_LOCAL
from gateway.termini import Terminus
from native_backend.terms import VOLATILE, Expiry, Terms

_EXPIRIES: dict[str, Expiry] = {
    "link-detach": "link-detach",
    "session-end": "session-end",
    "connection-close": "connection-close",
}


@dataclass(frozen=True, slots=True)
class HeldSource:
    """What is confirmed."""

    address: str
    terms: Terms
    capabilities: tuple[str, ...]


def asked_terms(terminus: Terminus, subscription: str) -> Terms:
    """`subscription` as the table `attach` says it: durable, shared or volatile."""
    selector = (NO_LOCAL if terminus.filters.no_local else "") + (terminus.filters.selector or "")
    if subscription == "volatile":
        return replace(VOLATILE, selector=selector)
    expiry = _EXPIRIES.get(terminus.expiry, "never")
    timeout_s = 0 if expiry == "never" else terminus.timeout_s
    return Terms(subscription == "shared", terminus.source_durability, expiry, timeout_s, selector)


def durable_name(container: str, link: str, terms: Terms, everybody: bool) -> str:
    """`everybody`: it is no container's own."""
    return recalled_name(container, link, everybody and terms.shared) + ("|volatile" if terms.volatile else "")


def recalled_name(container: str, link: str, everybody: bool) -> str:
    """The durable that a link without a source means."""
    return f"{'' if everybody else container}:{link.split('|')[0]}"


def held_source(address: str, durable: str, terms: Terms) -> HeldSource:
    shared = ("shared", "global") if durable.startswith(":") else ("shared",)
    return HeldSource(address, terms, ("topic", *(shared if terms.shared else ())))
