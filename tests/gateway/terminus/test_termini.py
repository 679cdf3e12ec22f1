"""What an ATTACH asks for, in the words of the tables."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.frames.frames import ATTACH, Frame
from gateway.terminus.durable_names import durable_name, subscriber
from gateway.terminus.durable_source import asked_terms
from gateway.terminus.termini import Terminus, read_terminus
from mappings.language.vocabulary import TABLES
from native_backend.nodes.start_position import EARLIEST, LATEST, StartPosition
from tests.kit.wire import frames
from transformers.codec import AmqpMap, Array, Described, Symbol, Timestamp, UInt, ULong


def attach(publishing: bool, terminus: Any) -> Terminus:
    source, target = (None, terminus) if publishing else (terminus, None)
    return read_terminus(Frame(0, ATTACH, ("name", UInt(0), not publishing, None, None, source, target)))


@pytest.mark.parametrize("publishing", [True, False])
@pytest.mark.parametrize(
    ("terminus", "address"),
    [
        (None, "none"),
        (frames.target(None), "none"),
        (frames.target(""), "none"),
        (Described(ULong(0x29), []), "none"),
        (Described(ULong(0x29), "no list"), "none"),
        (Described(ULong(0x29), [UInt(7)]), "none"),
        ("no terminus", "none"),
        (frames.target("q"), "node"),
        (frames.target(None, dynamic=True), "dynamic"),
        (frames.target("q", dynamic=True), "dynamic"),  # wrong, and said so by `wrong`
        (frames.target("q", dynamic=False), "node"),
        (frames.COORDINATOR, "coordinator"),
    ],
)
def test_addresses(publishing: bool, terminus: Any, address: str) -> None:
    read = attach(publishing, terminus)
    assert (read.direction, read.address) == ("publish" if publishing else "subscribe", address)
    assert read.node == ("q" if address in ("node", "dynamic") and terminus.value[0] == "q" else "")


@pytest.mark.parametrize(
    ("mode", "word"), [(None, "unset"), ("move", "move"), ("copy", "copy"), ("steal", "other"), ("", "unset")]
)
def test_K_3_distribution_modes(mode: str | None, word: str) -> None:
    assert attach(False, frames.source("q", mode=mode)).distribution_mode == word


@pytest.mark.parametrize(("durable", "word"), [(0, "none"), (1, "configuration"), (2, "unsettled-state"), (3, "none")])
def test_L_1_durability(durable: int, word: str) -> None:
    assert attach(False, frames.source("q", durable)).source_durability == word


@pytest.mark.parametrize(
    ("default", "word"),
    [
        (None, "unset"),
        (frames.state("accepted"), "accepted"),
        (frames.state("rejected"), "rejected"),
        (frames.state("released"), "released"),
        (frames.state("modified"), "modified"),
        (frames.state("modified", None, None), "modified"),
        (frames.state("modified", True), "modified-failed"),
        (frames.state("modified", False, True), "modified-undeliverable"),
        (frames.state("modified", True, True), "modified-failed-undeliverable"),
        (frames.state("received"), "unknown"),
        (Described(Symbol("amqp:foo:list"), []), "unknown"),
        (Described(Symbol("amqp:released:list"), []), "released"),
        ("accepted", "unknown"),
    ],
)
def test_I_2_default_outcomes(default: Any, word: str) -> None:
    assert attach(False, frames.source("q", default=default)).default_outcome == word


def test_every_word_is_one_of_the_tables() -> None:
    read = attach(False, frames.source("q", 2, "copy", default=frames.state("modified", True, True)))
    axes = dict(TABLES["attach"].axes) | dict(TABLES["default"].axes)
    for axis in (
        "direction",
        "address",
        "distribution_mode",
        "source_durability",
        "sharing",
        "filter",
        "default_outcome",
    ):
        assert getattr(read, axis) in axes[axis]


@pytest.mark.parametrize(
    ("filters", "word"),
    [
        (None, "none"),
        (AmqpMap([]), "none"),
        (AmqpMap([(Symbol("a"), None)]), "none"),
        (AmqpMap([(Symbol("a"), None), (Symbol("b"), Described(Symbol("b"), ""))]), "unsupported"),
        (AmqpMap([(Symbol("a"), "a bare string")]), "unsupported"),
        (AmqpMap([(Symbol("jms-selector"), "a bare string")]), "unsupported"),
        (AmqpMap([(Symbol("a"), Described(Symbol("apache.org:selector-filter:string"), "x"))]), "selector"),
        (AmqpMap([(Symbol("a"), Described(ULong(0x0000468C00000004), "x"))]), "selector"),
        (AmqpMap([(Symbol("jms-selector"), Described(Symbol("whatever"), "x"))]), "selector"),
        (AmqpMap([(Symbol("jms-selector"), Described(ULong(0x0000468C00000004), " "))]), "none"),
        (AmqpMap([(Symbol("jms-selector"), Described(ULong(0x0000468C00000004), 7))]), "unsupported"),
        (AmqpMap([(Symbol(key), Described(ULong(0x0000468C00000004), "x")) for key in "ab"]), "unsupported"),
        (AmqpMap([(Symbol("a"), Described(Symbol("rabbitmq:stream-offset-spec"), "last"))]), "unsupported"),
        (AmqpMap([(Symbol("a"), Described(Symbol("rabbitmq:stream-offset-spec"), True))]), "unsupported"),
        (AmqpMap([(Symbol("a"), Described(Symbol("rabbitmq:stream-offset-spec"), 7))]), "position"),
    ],
)
def test_J_1_filters(filters: Any, word: str) -> None:
    assert attach(False, frames.source("q", filters=filters)).filter == word


OFFSET, SELECTOR = Symbol("rabbitmq:stream-offset-spec"), ULong(0x0000468C00000004)


@pytest.mark.parametrize(
    ("described", "start"),
    [
        (Described(OFFSET, "first"), EARLIEST),
        (Described(OFFSET, Symbol("next")), LATEST),
        (Described(OFFSET, ULong(0)), StartPosition("eid", 0)),
        (Described(OFFSET, 17), StartPosition("eid", 17)),
        (Described(OFFSET, Timestamp(1700000000000)), StartPosition("time", 1700000000000)),
        (Described(SELECTOR, "amqp.annotation.x-opt-offset > '-1'"), EARLIEST),
        (Described(SELECTOR, "amqp.annotation.x-opt-offset > '@latest'"), LATEST),
        (Described(SELECTOR, "amqp.annotation.x-opt-offset > '41'"), StartPosition("eid", 42)),
        (Described(SELECTOR, " amqp.annotation.x-opt-sequence-number >='41' "), StartPosition("eid", 41)),
        (
            Described(SELECTOR, "amqp.annotation.x-opt-enqueued-time >= '1700000000000'"),
            StartPosition("time", 1700000000000),
        ),
        (
            Described(SELECTOR, "amqp.annotation.x-opt-enqueued-time > '1700000000000'"),
            StartPosition("time", 1700000000001),
        ),
    ],
)
def test_positions_as_at_rabbitmq_and_at_event_hubs(described: Described, start: StartPosition) -> None:
    selector = Described(Symbol("apache.org:selector-filter:string"), "a = 1")
    read = attach(False, frames.source("q", filters=AmqpMap([(Symbol("s"), selector), (Symbol("p"), described)])))
    assert (read.filter, read.filters.start, read.filters.selector) == ("position", start, "a = 1")


@pytest.mark.parametrize(
    ("names", "agreed"),
    [
        (None, None),
        (Array(0xA3, []), None),
        (Array(0xA3, [Symbol("amqp:accepted:list"), Symbol("amqp:released:list")]), {"accepted", "released"}),
        (Symbol("amqp:modified:list"), {"modified"}),
    ],
)
def test_I_3_I_6_outcomes(names: Any, agreed: set[str] | None) -> None:
    source = Described(ULong(0x28), ["q", *[None] * 8, names])
    assert attach(False, source).outcomes == agreed


def test_a_publishers_source_is_its_own_business() -> None:
    source = frames.source("elsewhere", 2, "copy", AmqpMap([(Symbol("a"), 1)]), frames.state("released"))
    read = read_terminus(Frame(0, ATTACH, ("n", UInt(0), False, None, None, source, frames.target("q"))))
    facts = (read.node, read.distribution_mode, read.source_durability, read.default_outcome, read.filter)
    assert facts == ("q", "unset", "none", "unset", "none")
    assert read.outcomes is None


@pytest.mark.parametrize("publishing", [True, False])
@pytest.mark.parametrize(
    ("capability", "kind"), [(None, "queue"), ("queue", "queue"), ("topic", "channel"), ("other", "queue")]
)
def test_the_kind_of_a_node_made_on_attach(publishing: bool, capability: str | None, kind: str) -> None:
    terminus = frames.target("q", capability=capability) if publishing else frames.source("q", capability=capability)
    assert attach(publishing, terminus).wanted_kind == kind
    several = Array(0xA3, [Symbol("x"), *([Symbol(capability)] if capability else [])])
    terminus.value[6 if publishing else 10] = several
    assert attach(publishing, terminus).wanted_kind == kind


def test_2_L_3_3_what_a_source_says_of_how_it_is_held() -> None:
    """Capabilities alone or in an array; an expiry policy that was not written is empty, not AMQP's default."""
    bare = attach(False, frames.source("c"))
    assert (bare.sharing, bare.all_containers, bare.expiry, bare.timeout_s) == ("exclusive", False, "", 0)
    link = attach(False, frames.source("c", 2, capability="shared", expiry="link-detach", timeout_s=9))
    assert (link.sharing, link.all_containers, link.expiry, link.timeout_s) == ("shared", False, "link-detach", 9)
    several = attach(False, frames.source("c", 2, capability="topic,shared,global"))
    assert (several.sharing, several.all_containers, several.wanted_kind) == ("shared", True, "channel")
    assert attach(True, frames.target("c", capability="shared")).sharing == "exclusive", "a publisher shares nothing"


def test_3_3_names_of_durables() -> None:
    all_containers = attach(False, frames.source("c", 2, capability="shared,global"))
    shared, volatile = asked_terms(all_containers, "shared"), asked_terms(all_containers, "volatile")
    alone = asked_terms(attach(False, frames.source("c", 2, expiry="session-end", timeout_s=3)), "durable")
    assert durable_name(subscriber("me", "s|global2", True, True)).name == ":s"
    assert durable_name(subscriber("me", "s|2", True)).earlier == "me:s"
    assert durable_name(subscriber("me", "s|global-volatile1", True, True), volatile=True).name == ":s|volatile"
    assert (alone.expiry, alone.timeout_s, alone.kind) == ("session-end", 3, "exclusive")
    assert (shared.expiry, shared.timeout_s, shared.kind) == ("never", 0, "shared")
    assert (volatile.expiry, volatile.kind) == ("link-detach", "volatile")
