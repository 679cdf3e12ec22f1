"""Writing the source of a durable, or a node that was made, into proton's side of a link. Part of the fence
(`gateway.engine`).

May import: `cproton`, `gateway.dynamic_nodes`, `gateway.engine_states`, `gateway.sources`, `transformers.amqp_types`.
"""

from __future__ import annotations

from typing import Any, Final

import cproton
from cproton import lib

from gateway.dynamic_nodes import MadeNode
from gateway.engine_states import offer_capabilities, set_data
from gateway.sources import HeldSource
from transformers.amqp_types import encode

_DURABILITIES: Final = {
    "none": lib.PN_NONDURABLE,
    "configuration": lib.PN_CONFIGURATION,
    "unsettled-state": lib.PN_DELIVERIES,
}
_EXPIRIES: Final = {
    "link-detach": lib.PN_EXPIRE_WITH_LINK,
    "session-end": lib.PN_EXPIRE_WITH_SESSION,
    "connection-close": lib.PN_EXPIRE_WITH_CONNECTION,
    "never": lib.PN_EXPIRE_NEVER,
}


_MODES: Final = {"move": lib.PN_DIST_MODE_MOVE, "copy": lib.PN_DIST_MODE_COPY}


def write_mode(source: Any, mode: str) -> None:
    lib.pn_terminus_set_distribution_mode(source, _MODES[mode])


def write_source(source: Any, held: HeldSource) -> None:
    """Over what was copied from the peer's: what is not said here stays."""
    lib.pn_terminus_set_type(source, lib.PN_SOURCE)
    cproton.pn_terminus_set_address(source, held.address)
    lib.pn_terminus_set_durability(source, _DURABILITIES[held.terms.durability])
    lib.pn_terminus_set_expiry_policy(source, _EXPIRIES[held.terms.expiry])
    lib.pn_terminus_set_timeout(source, held.terms.timeout_s)
    lib.pn_terminus_set_distribution_mode(source, lib.PN_DIST_MODE_COPY)
    offer_capabilities(source, held.capabilities)


def write_made(terminus: Any, made: MadeNode) -> None:
    """The address of a dynamic node and its actual properties (M-2, M-6)."""
    cproton.pn_terminus_set_address(terminus, made.address)
    lib.pn_terminus_set_dynamic(terminus, True)
    set_data(lib.pn_terminus_properties(terminus), encode(made.properties))
