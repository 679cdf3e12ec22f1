"""The source of a link to a durable: on what terms it is asked for, and what our ATTACH says of it.

What it is called: `gateway.terminus.durable_names`. A durable source that names no expiry policy never expires, and is
told so. Source: semantics.md 2.L, 3.3 (Qpid JMS); ADR 0044.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from gateway.terminus.no_local import NO_LOCAL
from gateway.terminus.termini import Terminus
from native_backend.nodes.durable_terms import VOLATILE, DurableTerms, Expiry

_EXPIRIES: dict[str, Expiry] = {name: name for name in get_args(Expiry)}


@dataclass(frozen=True, slots=True)
class DurableSource:
    """What is confirmed."""

    address: str
    terms: DurableTerms
    capabilities: tuple[str, ...]


def asked_terms(terminus: Terminus, subscription: str) -> DurableTerms:
    """`subscription` as the table `attach` says it: durable, shared or volatile."""
    selector = (NO_LOCAL if terminus.filters.no_local else "") + (terminus.filters.selector or "")
    if subscription == "volatile":
        return replace(VOLATILE, selector=selector)
    expiry = _EXPIRIES.get(terminus.expiry, "never")
    timeout_s = 0 if expiry == "never" else terminus.timeout_s
    return DurableTerms(subscription == "shared", terminus.source_durability, expiry, timeout_s, selector)


def durable_source(address: str, terms: DurableTerms, all_containers: bool) -> DurableSource:
    """`all_containers`: all containers share it."""
    shared = ("shared", "global") if all_containers else ("shared",)
    return DurableSource(address, terms, ("topic", *(shared if terms.shared else ())))
