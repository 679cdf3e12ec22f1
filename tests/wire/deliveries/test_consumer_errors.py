"""What a consumer says beside the name of its outcome is not lost: in the dead letter, in the answer, in the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.cli.stored_tables import documents as documents_of
from gateway.config.settings import load_settings
from gateway.evidence.kept_detail import DESCRIPTION_BYTES_MAX, INFO_BYTES_MAX
from gateway.serve.open_log import open_log
from tests.kit.processes.explain_record import replay
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import BAD, INFO, WORDS, error, given_back, with_letters
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from tests.wire.deliveries.dead_letters import annotated, letter
from transformers.codec import AmqpMap, Symbol


@pytest.fixture
def nodes(gateway: GatewayProcess, node: str) -> tuple[str, str]:
    return with_letters(gateway, node)


def said_of(payload: bytes) -> tuple[Any, Any, Any]:
    annotations = annotated(payload)
    assert annotations["x-opt-dead-letter-cause"] == "rejected"
    fields = [annotations.get(f"x-opt-dead-letter-{part}") for part in ("condition", "description", "info")]
    return fields[0], fields[1], fields[2]


@pytest.mark.requirement("H-5")
@pytest.mark.parametrize("settled", [False, True])
def test_H_5_the_error_of_a_rejection_stands_in_the_dead_letter(
    gateway: GatewayProcess, nodes: tuple[str, str], settled: bool
) -> None:
    node, dead = nodes
    given_back(gateway, node, BAD, settled=settled)
    assert said_of(letter(gateway, dead)) == ("app:bad", WORDS, INFO)


def test_each_letter_has_its_own_error(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    node, dead = nodes
    states = [BAD, frames.state("rejected"), frames.state("rejected", error("app:other"))]
    given_back(gateway, node, *states)
    with Peer(gateway.port) as other:
        other.consumer(dead, credit=3)
        letters = [said_of(seen.payload) for seen in other.receive(3)]
        other.settle([0, 1, 2], frames.state("accepted"))
    assert letters == [("app:bad", WORDS, INFO), (None, None, None), ("app:other", None, None)]


def test_a_letter_has_room_for_so_much_of_an_error(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    """What is too long is cut at a character, a map that is too large is left out; the message is kept."""
    node, dead = nodes
    large = AmqpMap([(Symbol("stack"), "x" * INFO_BYTES_MAX)])
    words = "\u00e4" * (DESCRIPTION_BYTES_MAX // 2 + 1)
    given_back(gateway, node, frames.state("rejected", error("app:" + "b" * 300, words, large)), settled=True)
    assert said_of(letter(gateway, dead)) == ("app:" + "b" * 251, words[:-1], None)


@pytest.mark.requirement("H-5")
def test_the_error_of_a_rejection_in_a_transaction_stands_in_the_dead_letter(
    gateway: GatewayProcess, nodes: tuple[str, str]
) -> None:
    """And in the answer to the consumer, when the transaction is over."""
    node, dead = nodes
    with Transacting(gateway.port) as peer:
        peer.stored(node, frames.message())
        transaction = peer.begun()
        peer.consumer(node, credit=1)
        peer.receive(1)
        peer.settle([0], frames.in_transaction(transaction, BAD), settled=False)
        assert peer.discharge(transaction) == "accepted"
        assert peer.expect("disposition").field(4) == BAD
    assert said_of(letter(gateway, dead)) == ("app:bad", WORDS, INFO)


@pytest.mark.parametrize(
    "state",
    [
        BAD,
        frames.state("rejected", error("app:bad", "why")),
        frames.state("rejected"),
        frames.state("modified", True, False, AmqpMap([(Symbol("x-opt-seen"), "by me"), (Symbol("x-opt-n"), 3)])),
        frames.state("modified", True, True),
        frames.state("modified", False, True),
    ],
    ids=["error", "no-info", "no-error", "annotations", "failed-undeliverable", "undeliverable"],
)
def test_an_outcome_is_sent_back_as_it_came(gateway: GatewayProcess, nodes: tuple[str, str], state: Any) -> None:
    (reply,) = given_back(gateway, nodes[0], state)
    assert reply.field(3) is True and reply.field(4).descriptor == state.descriptor
    answer = [*reply.field(4).value, None, None, None]
    wanted = [*state.value, None, None, None]
    if state.descriptor == 0x25 and answer[0] is not None:
        answer[0], wanted[0] = ([*fields[0].value, None, None][:3] for fields in (answer, wanted))
    assert answer[:3] == wanted[:3]


def test_a_plain_subscriber_hears_its_own_words_too(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.consumer(frames.source(node, capability="topic"), credit=1)
        peer.stored(node, frames.message(), kind="channel")
        peer.receive(1)
        peer.settle([0], BAD, settled=False)
        assert peer.expect("disposition").field(4) == BAD


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        (frames.state("rejected", error("app:bad", "why", AmqpMap([(Symbol("s"), "x" * 600)]))), "no map"),
        (frames.state("rejected", error("app:bad", "w" * 600)), "nothing"),
        (frames.state("modified", True, False, AmqpMap([(Symbol("x-opt-s"), "x" * 600)])), "no map"),
    ],
)
def test_an_outcome_that_the_peers_frames_have_no_room_for_is_not_sent_back(
    gateway: GatewayProcess, nodes: tuple[str, str], state: Any, kept: str
) -> None:
    with Peer(gateway.port, begin=False) as peer:
        peer.send(frames.AMQP_HEADER, frames.open_("small", frame_size=512), frames.begin())
        peer.expect("open")
        peer.expect("begin")
        peer.stored(nodes[0], frames.message())
        peer.consumer(nodes[0], credit=1)
        peer.receive(1)
        peer.settle([0], state, settled=False)
        frame = peer.expect("disposition").field(4)
    assert frame.descriptor == state.descriptor
    if state.descriptor == 0x27:
        assert frame.value[:2] == [True, False] and frame.value[2:] in ([], [None])
    elif kept == "nothing":
        assert frame.value in ([], [None])
    else:
        assert [str(field) for field in frame.value[0].value[:2]] == ["app:bad", "why"]
        assert frame.value[0].value[2:] in ([], [None])


def documents(gateway: GatewayProcess, topic: str = "outcomes") -> Iterator[dict[str, Any]]:
    settings = load_settings(gateway.config_path)
    log = open_log(settings)
    try:
        yield from documents_of(log, f"{settings.realm.prefix}.{topic}")
    finally:
        log.close()


@pytest.mark.parametrize("realm", ["embedded", "kafka"])
def test_an_error_stands_in_the_letter_and_in_the_record(new_gateway: StartGateway, realm: str) -> None:
    gateway = new_gateway(realm)
    node, dead = with_letters(gateway, "orders")
    states = [BAD, frames.state("rejected", error("app:other")), BAD, frames.state("rejected")]
    given_back(gateway, node, *states)
    with Peer(gateway.port) as other:
        other.consumer(dead, credit=4)
        letters = sorted(str(said_of(seen.payload)) for seen in other.receive(4))
        other.settle([0, 1, 2, 3], frames.state("accepted"))
        other.send(frames.close())
        other.closed()
    expected = [("app:bad", WORDS, INFO)] * 2 + [("app:other", None, None), (None, None, None)]
    assert letters == sorted(map(str, expected))
    gateway.stop()
    groups = [group for record in documents(gateway) for group in record["groups"] if group["outcome"] == "rejected"]
    errors: dict[int, dict[str, Any]] = {}
    for found_error in (entry for group in groups for entry in group.get("errors", ())):
        seqs = found_error.pop("seq")
        errors |= dict.fromkeys(seqs, found_error)
    bad = {"condition": "app:bad", "description": WORDS, "info": {"order": 4711, "octets": "01ff"}}
    assert errors == {5: bad, 6: {"condition": "app:other", "description": None, "info": None}, 7: bad}
    run = next(documents(gateway))["run"]
    code, printed = replay(gateway, f"{run}:5")
    assert code == 0, printed
    assert f"  error    app:bad {json.dumps(WORDS)} {json.dumps(bad['info'])}\n" in printed
    assert "  error " not in replay(gateway, f"{run}:8")[1]


def test_a_letter_of_named_headers_says_it_too(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded", transformer="complete")
    node, dead = with_letters(gateway, "orders")
    given_back(gateway, node, BAD)
    assert said_of(letter(gateway, dead)) == ("app:bad", WORDS, INFO)


def test_as_many_errors_as_one_record_holds_are_kept_and_the_others_counted(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    gateway.command("node", "create", "orders")
    states = [frames.state("rejected", error(f"app:{number}")) for number in range(120)]
    given_back(gateway, "orders", *states)
    gateway.stop()
    kept = left_out = 0
    for record in documents(gateway):
        here = [len(entry["seq"]) for group in record["groups"] for entry in group.get("errors", ())]
        assert len(here) <= 50
        kept += sum(here)
        left_out += sum(group.get("errors_left_out", 0) for group in record["groups"])
    assert kept + left_out == 120 and kept >= 50


def test_an_error_that_is_no_text_is_refused_and_the_delivery_comes_again(
    gateway: GatewayProcess, nodes: tuple[str, str]
) -> None:
    node, dead = nodes
    state = frames.state("rejected", error("app:bad", "ab-cd"))
    with Peer(gateway.port) as peer:
        peer.stored(node, frames.message())
        peer.consumer(node, credit=1)
        peer.receive(1)
        peer.send(frames.disposition(0, 0, state, False).replace(b"ab-cd", b"ab\xffcd"))
        assert peer.expect("close").condition == "amqp:decode-error"
    given_back_again(gateway, node)
    assert said_of(letter(gateway, dead)) == ("app:bad", WORDS, INFO)


def given_back_again(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.consumer(node, credit=1)
        peer.receive(1)
        peer.settle([0], BAD, settled=False)
        assert peer.expect("disposition").field(4) == BAD


def test_a_condition_ends_at_its_first_nul(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    """Proton's texts end there: the rest of the error is kept."""
    node, dead = nodes
    (reply,) = given_back(gateway, node, frames.state("rejected", error("app:b\0d", "why", INFO)))
    assert reply.field(4).value[0].value[0] == "app:b"
    assert said_of(letter(gateway, dead)) == ("app:b", "why", INFO)


def test_the_deliveries_of_one_disposition_share_its_error(gateway: GatewayProcess, nodes: tuple[str, str]) -> None:
    node, dead = nodes
    with Peer(gateway.port) as peer:
        peer.stored(node, *(frames.message(b"%d" % number) for number in range(3)))
        peer.consumer(node, credit=3)
        peer.receive(3)
        peer.send(frames.disposition(0, 2, BAD, False))
        assert peer.outcomes(3) == dict.fromkeys(range(3), "rejected:app:bad")
    with Peer(gateway.port) as other:
        other.consumer(dead, credit=3)
        assert {str(said_of(seen.payload)) for seen in other.receive(3)} == {str(("app:bad", WORDS, INFO))}
        other.settle([0, 1, 2], frames.state("accepted"))
