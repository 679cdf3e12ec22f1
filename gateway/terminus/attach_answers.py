"""What an ATTACH is answered with, for each kind of link: what holds of it here, built from what was decided.

The terminus on our side is described from the node, the durable or what was made; of what was asked for stays what is
in effect. The peer's own terminus is answered as the peer gave it.
Source: semantics O-1, O-3, L-1, L-3, M-2, M-6, K-1, I-5, I-6, J-2; ADR 0081.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gateway.frames.attach_frame import (
    DURABILITIES,
    OUTCOMES,
    AttachAnswer,
    Coordinator,
    Lasting,
    Source,
    Target,
    read_source,
    read_target,
)
from gateway.frames.frames import Frame
from gateway.terminus.attach import RECEIVER, SENDER, receiver_settle_mode, sender_settle_mode
from gateway.terminus.durable_source import DurableSource
from gateway.terminus.dynamic_nodes import DynamicNode
from gateway.terminus.filters import filters_in_effect, selecting_filters
from gateway.terminus.no_local import NO_LOCAL
from gateway.terminus.termini import Terminus
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.node import Node
from transformers.codec import AmqpMap

_SOURCE_AT, _TARGET_AT, _UNSETTLED_AT = 5, 6, 7
_OF_KIND: Final = {"queue": ("queue", "temporary-queue"), "channel": ("topic", "temporary-topic")}
_ALL: Final = tuple(f"amqp:{name}:list" for name in OUTCOMES)
_LINK_DETACH, _SESSION_END = "link-detach", "session-end"


def consumer_answer(
    attach: Frame, terminus: Terminus, node: Node, mode: str, held: DurableSource | None, made: DynamicNode | None
) -> AttachAnswer:
    """Our source. `mode`: how it distributes; `held`: the durable, where there is one."""
    requested = read_source(attach.field(_SOURCE_AT)) or Source()
    source = replace(
        requested,
        lasting=_lasting(requested.lasting, terminus.asked, made) if held is None else _held(held),
        mode=mode,
        filters=filters_in_effect(requested.filters),
        outcomes=_agreed(terminus),
        capabilities=_holding(requested.capabilities, node) if held is None else held.capabilities,
    )
    return replace(_modes(attach), source=source, target=read_target(attach.field(_TARGET_AT)))


def recalled_answer(attach: Frame, held: DurableSource) -> AttachAnswer:
    """Our source, which the peer has not named: that of the durable that was found."""
    filters = _filters_of(held.terms)
    source = Source(_held(held), "copy", filters, None, _ALL, held.capabilities)
    return replace(_modes(attach), source=source, target=read_target(attach.field(_TARGET_AT)))


def publisher_answer(
    attach: Frame, terminus: Terminus, node: Node, message_size_max: int, made: DynamicNode | None
) -> AttachAnswer:
    """Our target."""
    requested = read_target(attach.field(_TARGET_AT)) or Target()
    target = Target(_lasting(requested.lasting, terminus.asked, made), _holding(requested.capabilities, node))
    return replace(_published(attach), target=target, message_size_max=message_size_max)


def relay_answer(attach: Frame, message_size_max: int) -> AttachAnswer:
    """Our target, which has no address."""
    return replace(_published(attach), target=Target(), message_size_max=message_size_max)


def coordinator_answer(attach: Frame, capabilities: list[str], message_size_max: int) -> AttachAnswer:
    """A coordinator settles by itself."""
    target = Coordinator(tuple(capabilities))
    return replace(_published(attach), target=target, settles_second=False, message_size_max=message_size_max)


def refusing_answer(attach: Frame, sends: bool) -> AttachAnswer:
    """No terminus on our side (O-1). `sends`: our side would have been the sender."""
    if sends:
        return replace(_modes(attach), target=read_target(attach.field(_TARGET_AT)))
    return _published(attach)


def _published(attach: Frame) -> AttachAnswer:
    """With the source that the peer has."""
    return replace(_modes(attach), source=read_source(attach.field(_SOURCE_AT)))


def _modes(attach: Frame) -> AttachAnswer:
    unsettled = attach.field(_UNSETTLED_AT)
    return AttachAnswer(
        None,
        None,
        SENDER.index(sender_settle_mode(attach)),
        RECEIVER.index(receiver_settle_mode(attach)) == 1,
        resumed=isinstance(unsettled, AmqpMap) and not unsettled.pairs,
    )


def _agreed(terminus: Terminus) -> tuple[str, ...]:
    """All there are where none was listed (I-5)."""
    if terminus.outcomes is None:
        return _ALL
    return tuple(f"amqp:{name}:list" for name in OUTCOMES if name in terminus.outcomes)


def _lasting(requested: Lasting, address: str, made: DynamicNode | None) -> Lasting:
    """Of a terminus that keeps nothing: it ends with its link or with its session, as was asked for."""
    expiry = _LINK_DETACH if requested.expiry == _LINK_DETACH else _SESSION_END
    if made is None:
        return Lasting(address, 0, expiry, 0, False)
    return Lasting(made.address, 0, expiry, 0, True, made.properties)


def _held(held: DurableSource) -> Lasting:
    terms = held.terms
    return Lasting(held.address, DURABILITIES.index(terms.durability), terms.expiry, terms.timeout_s, False)


def _holding(requested: tuple[str, ...], node: Node) -> tuple[str, ...]:
    """Those of them that the node has."""
    plain, temporary = _OF_KIND[node.kind]
    return tuple(name for name in requested if name == plain or (name == temporary and node.temporary))


def _filters_of(terms: DurableTerms) -> AmqpMap | None:
    text = terms.selector.removeprefix(NO_LOCAL)
    return selecting_filters(text, text != terms.selector)
