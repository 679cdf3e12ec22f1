"""Ledgers of clients against a realm that is as it should be: each lie of one of the two has its class and its tag, and
nothing is said of what cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from native_backend.log.open import open_embedded
from native_backend.nodes.node import Node
from reconciliation.model.settings import Realm
from tests.kit.wire.client_ledger import body_of
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import START_US, GatewayRun, Sent, World

NAMES = [f"m-{number}" for number in range(6)]
NOW_US = START_US + 3_600_000_000
STATES = ["accepted", "accepted", "released", "rejected", "modified"]  # the last message is left
Line = dict[str, Any]


@dataclass
class Honest:
    """A realm, and what its clients noted."""

    directory: Path
    world: World
    run: GatewayRun
    orders: Node
    sent: list[Sent] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def note(self, what: str, client: str, **fields: Any) -> None:
        self.lines.append({"v": 1, "what": what, "client": client, "at": START_US + len(self.lines), **fields})

    def line(self, what: str, place: int = 0) -> Line:
        return [line for line in self.lines if line["what"] == what][place]

    def tag(self, place: int) -> str:
        return f"{self.orders.store}:{self.sent[place].eid}"

    def publish(self, *names: str) -> list[Sent]:
        seqs = self.run.number(len(names))
        keys = [f"1;basic;{self.run.name};{seq};1;4;;0;;0".encode() for seq in seqs]
        values = [Message(id=name, body=f"text of {name}").encode() for name in names]
        eids = self.world.append(self.orders.topic, keys, values)
        self.run.tell_publish(self.orders, seqs, eids, "stored")
        return [Sent(seq, eid) for seq, eid in zip(seqs, eids, strict=True)]

    def ledger(self) -> Path:
        directory = self.directory / "ledgers"
        directory.mkdir(exist_ok=True)
        for client in {line["client"] for line in self.lines}:
            of_client = [json.dumps(line) + "\n" for line in self.lines if line["client"] == client]
            (directory / f"{client}.jsonl").write_text("".join(of_client))
        return directory


@pytest.fixture
def honest(tmp_path: Path) -> Honest:
    """Six messages: sent, told, received, and settled in all ways."""
    with closing(open_embedded(tmp_path / "realm")) as log:
        world = World(log, "um")
        orders, run = world.queue("orders"), world.run()
        made = Honest(tmp_path, world, run, orders)
        made.sent = made.publish(*NAMES)
        run.turn()
        for place, state in enumerate(STATES):
            run.settle(orders, [made.sent[place]], state)
        run.turn()
        run.close()
        run.attest()
    made.note("opened", "shop", container="app-1")
    made.note("opened", "desk", container="app-1")
    for place, name in enumerate(NAMES):
        body = body_of(f"text of {name}".encode())
        made.note("sent", "shop", node="orders", id=name, body=body)
        made.note("told", "shop", id=name, outcome="accepted")
        made.note("received", "desk", tag=made.tag(place), id=name, body=body)
    for place, state in enumerate(STATES):
        made.note("settled", "desk", tag=made.tag(place), outcome=state)
    made.note("closed", "shop")
    made.note("closed", "desk")
    return made


@pytest.fixture
def compared(reconcile: Reconcile, honest: Honest) -> Callable[[], Result]:
    def run() -> Result:
        realm = Realm("embedded", "um", path=honest.directory / "realm")
        return reconcile(realm, ledgers=honest.ledger(), now_us=NOW_US)

    return run


def left(result: Result) -> dict[str, int]:
    reasons: dict[str, int] = result.manifest["ledgers"]["left"]
    return reasons


def found(result: Result) -> list[tuple[str, int | None, str]]:
    """Class, EID and words of what the ledgers show."""
    return [(row["class"], row["eid"], row["detail"]) for row in result.rows() if row["class"].startswith("C")]


def test_what_agrees_is_clean(compared: Callable[[], Result], honest: Honest) -> None:
    result = compared()
    assert (result.code, found(result), left(result)) == (0, [], {}), result.text
    counts = "Client ledgers: 2 clients; 6 sent, 6 told, 6 received, 5 settled."
    assert counts in result.text.splitlines(), result.text
    assert "Do the clients&#x27; own ledgers agree?" in (result.out / "index.html").read_text()
    assert not (result.out / "messages").exists()


def told_of_none(made: Honest) -> None:
    made.note("sent", "shop", node="orders", id="m-9")
    made.note("told", "shop", id="m-9", outcome="accepted")


def changed(what: str, place: int, **fields: Any) -> Callable[[Honest], None]:
    def change(made: Honest) -> None:
        made.line(what, place).update(fields)

    return change


def tag_of_another(made: Honest) -> None:
    made.line("received", 1)["tag"] = made.tag(2)
    made.line("received", 1).pop("body")


def tag_of_none(made: Honest) -> None:
    made.line("received", 1)["tag"] = f"{made.orders.store}:77"


def never_settled(made: Honest) -> None:
    made.lines.remove(made.line("settled", 1))


def settled_unread(made: Honest) -> None:
    made.note("opened", "later", container="app-1")
    made.note("settled", "later", tag=made.tag(5), outcome="accepted")
    made.note("closed", "later")


def more_records(made: Honest, tell: Callable[[GatewayRun], None]) -> None:
    """Another gateway was there before the client wrote its last lines."""
    with closing(open_embedded(made.directory / "realm")) as made.world.log:
        made.world.log.control.claim(made.world.shard)
        run = made.world.run()
        tell(run)
        run.close()
        run.attest()


def refused_otherwise(made: Honest) -> None:
    outcomes = []

    def tell(run: GatewayRun) -> None:
        (seq,) = run.number(1)
        group = run.tell_publish(made.orders, [seq], [-1], "access-denied")
        group["message_ids"] = [[seq, "m-9"]]
        outcomes.append(group["outcome"])

    more_records(made, tell)
    made.note("sent", "shop", node="orders", id="m-9")
    made.note("told", "shop", id="m-9", outcome="modified" if outcomes != ["modified"] else "rejected")


def came_back(made: Honest, cause: str, *decisions: dict[str, Any]) -> None:
    """The client settled its last message, closed in order, and the gateway recorded that the link ended."""

    def tell(run: GatewayRun) -> None:
        run.settle(made.orders, [made.sent[5]], "released", cause=cause)
        run.turn(decisions=decisions)

    settled_unread(made)
    more_records(made, tell)


def cut_off(made: Honest) -> None:
    came_back(made, "cut-off")


def ended_by_the_gateway(made: Honest) -> None:
    came_back(made, "lost", {"what": "subscription", "container": "app-1"})


def ended_by_its_client(made: Honest) -> None:
    came_back(made, "lost", {"what": "subscription", "container": "app-2"})


LIES: dict[str, tuple[Callable[[Honest], None], tuple[str, int | None, str]]] = {
    "accepted-not-stored": (
        told_of_none,
        ("C1", None, "the client was told accepted, and no event has the message-id: m-9"),
    ),
    "refused-otherwise": (
        refused_otherwise,
        ("C2", None, "the client was told modified, and recorded is rejected, of the message-id: m-9"),
    ),
    "told-released": (
        changed("told", 1, outcome="released"),
        ("C2", 1, "the client was told released, and recorded is accepted, of the message-id: m-1"),
    ),
    "tag-of-another": (
        tag_of_another,
        ("C3", 2, "the client was given a message under a tag that names another one: m-1, where is m-2"),
    ),
    "tag-of-none": (tag_of_none, ("C3", 77, "the client was given a message under a tag that names no event: m-1")),
    "tag-of-no-store": (
        changed("received", 1, tag="4711:7"),
        ("C3", 7, "the client was given a message under a tag that names no event: m-1"),
    ),
    "body-sent": (
        changed("sent", 4, body="00000000"),
        ("C4", 4, "the body that is stored is not the one that was sent, of the message-id: m-4"),
    ),
    "body-given": (
        changed("received", 4, body="00000000"),
        ("C4", 4, "the body that was given is not the one that is stored, of the message-id: m-4"),
    ),
    "settled-otherwise": (
        changed("settled", 1, outcome="released"),
        ("C5", 1, "the client said released, and the gateway has read accepted"),
    ),
    "never-settled": (never_settled, ("C5", 1, "the gateway has read accepted, and the client did not say so")),
    "ended-by-its-client": (ended_by_its_client, ("C5", 5, "the client said accepted, and no outcome record has it")),
    "settled-unread": (settled_unread, ("C5", 5, "the client said accepted, and no outcome record has it")),
}


@pytest.mark.parametrize("lie", LIES)
def test_each_lie_is_found(lie: str, compared: Callable[[], Result], honest: Honest) -> None:
    plant, expected = LIES[lie]
    plant(honest)
    result = compared()
    assert found(result) == [expected], result.text
    assert (result.code, left(result)) == (1, {})
    (cause,) = [entry for entry in result.manifest["classes"] if entry["class"] == expected[0]]
    assert cause["count"] == 1


def test_all_lies_at_once(compared: Callable[[], Result], honest: Honest) -> None:
    """But for those that speak of the same message."""
    lies = ("accepted-not-stored", "tag-of-none", "body-sent", "settled-unread")
    for lie in lies:
        LIES[lie][0](honest)
    assert sorted(found(compared()), key=str) == sorted((LIES[lie][1] for lie in lies), key=str)


def no_end(made: Honest) -> None:
    settled_unread(made)
    made.lines.pop()


def in_a_transaction(made: Honest) -> None:
    told_of_none(made)
    made.line("sent", -1)["transaction"] = "t-1"


def of_a_node_that_is_gone(made: Honest) -> None:
    told_of_none(made)
    made.line("sent", -1)["node"] = "gone"


def without_a_tag(made: Honest) -> None:
    """By its message-id alone."""
    for what in ("received", "settled"):
        line = made.line(what, 1)
        del line["tag"]
        line["id"] = "m-1"
    made.note("settled", "desk", id="m-9", outcome="released")


def of_an_earlier_node(made: Honest) -> None:
    def tell(run: GatewayRun) -> None:
        run.delete(made.orders)
        made.world.queue("orders")

    more_records(made, tell)


def twice_and_one_node_gone(made: Honest) -> None:
    made.note("sent", "shop", node="gone", id="m-1")
    made.note("told", "shop", id="m-1", outcome="accepted")


def of_a_later_store(made: Honest) -> None:
    made.note("received", "desk", tag="4711:7", id="m-9")
    made.line("received", -1)["at"] = NOW_US + 1


NOT_COMPARED: dict[str, tuple[Callable[[Honest], None], dict[str, int]]] = {
    "no-end": (no_end, {"settled, and the connection may have ended before that was read": 1}),
    "in-a-transaction": (
        in_a_transaction, {"accepted in a transaction of which no line says that it was committed": 1}
    ),
    "gone": (
        of_a_node_that_is_gone,
        {"accepted in a node that is no more, or whose store could not be read": 1},
    ),
    "earlier-node": (
        of_an_earlier_node,
        {
            "accepted before the node of that name was made": len(NAMES),
            "given from a store that is no more, or could not be read": len(NAMES),
        },
    ),
    "cut-off": (cut_off, {"settled, and a record says that the link ended before that was read": 1}),
    "ended-by-the-gateway": (
        ended_by_the_gateway, {"settled, and a record says that the link ended before that was read": 1}
    ),
    "twice": (
        twice_and_one_node_gone, {"accepted in a node that is no more, or whose store could not be read": 1}
    ),
    "later-store": (
        of_a_later_store, {"given from a store that may have been made since the records were landed": 1}
    ),
    "no-tag": (without_a_tag, {"settled without a tag, of a message-id that no event, or several, have": 1}),
}  # fmt: skip


@pytest.mark.parametrize("why", NOT_COMPARED)
def test_what_cannot_be_compared_is_counted(why: str, compared: Callable[[], Result], honest: Honest) -> None:
    plant, expected = NOT_COMPARED[why]
    plant(honest)
    result = compared()
    assert (result.code, found(result), left(result)) == (0, [], expected), result.text


NO_LINES = (
    '{"v":1,"what":"closed","client":"c","at":1764350000000000000}',
    "{",
    '{"v":1,"what":"sent","client":"shop","at":1}',
    '{"v":2}',
    '{"v":1,"what":"x","client":"c","at":1}',
)


def test_lines_that_are_none_make_it_incomplete(compared: Callable[[], Result], honest: Honest) -> None:
    (honest.ledger() / "torn.jsonl").write_text("\n".join(NO_LINES) + "\n\n")
    result = compared()
    assert (result.code, result.manifest["verdict"], result.manifest["complete"]) == (1, "incomplete", False)
    (row,) = [row for row in result.rows() if row["class"] == "Q1"]
    assert (row["count"], found(result)) == (len(NO_LINES), []), row
    assert "torn.jsonl ({)" in row["detail"], row
