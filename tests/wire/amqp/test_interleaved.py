"""Messages of several links of one session, in several transfers each, that come mixed with one another: inside two
transactions and outside, settled and not, given up in the middle. Each is stored whole where its transaction says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from mappings import load_tables
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import Seen
from tests.kit.wire.scripted_realm import ScriptedRealm
from tests.kit.wire.splitting import shortened
from transformers.codec import UInt

TABLES = load_tables()
LINKS = {0: "q0", 1: "q1", 2: "q2"}  # handle -> node
MESSAGES_MAX, PARTS_MAX, READS_MAX = 4, 4, 7  # of a link, of a message, of all octets


@dataclass
class Message:
    """One delivery, and what is still to be sent of it."""

    handle: int
    body: bytes
    transaction: bytes | None
    settled: bool
    aborted: bool
    pieces: list[bytes]
    sent: int = 0
    number: int = -1
    tag: bytes = field(init=False)

    def begin(self, number: int) -> None:
        self.number, self.tag = number, b"tag %d" % number

    @property
    def is_over(self) -> bool:
        return self.sent == len(self.pieces)


def drawn(random: Random, handle: int, at: int, transactions: list[bytes]) -> Message:
    body = frames.message(b"%d.%d" % (handle, at) + b"z" * random.randint(0, 30))
    count = random.randint(1, PARTS_MAX)
    cuts = sorted(random.randint(0, len(body)) for _ in range(count - 1))
    pieces = [body[low:high] for low, high in pairwise([0, *cuts, len(body)])]
    transaction = random.choice([None, None, *transactions])
    aborted = count > 1 and random.random() < 0.15
    return Message(handle, body, transaction, random.random() < 0.2, aborted, pieces)


def next_transfer(message: Message, random: Random) -> bytes:
    """The next one of that message; what may be left out is said or not."""
    first, last = message.sent == 0, message.sent == len(message.pieces) - 1
    is_stated = first or random.random() < 0.4
    state = None
    if message.transaction is not None and (first or random.random() < 0.4):
        state = frames.in_transaction(message.transaction)
    gives_up = last and message.aborted
    fields = [
        UInt(message.handle),
        UInt(message.number) if is_stated else None,
        message.tag if first or random.random() < 0.4 else None,
        random.choice([None, UInt(0)]),
        message.settled if first or random.random() < 0.5 else None,
        random.choice([None, False]) if last else True,
        None,
        state,
        random.choice([None, False]),
        True if gives_up else random.choice([None, False]),
        random.choice([None, False, True]),
    ]
    payload = b"" if gives_up else message.pieces[message.sent]
    message.sent += 1
    return frames.frame(frames.TRANSFER, shortened(fields, random), payload)


def mixed(peer: Conversation, streams: dict[int, list[Message]], random: Random) -> bytes:
    """All of it; the messages of one link stay in order and apart."""
    left = {handle: [*stream] for handle, stream in streams.items()}
    parts = []
    while waiting := [handle for handle, stream in left.items() if stream]:
        handle = random.choice(waiting)
        message = left[handle][0]
        if message.sent == 0:
            message.begin(peer.number())
        parts.append(next_transfer(message, random))
        if message.is_over:
            left[handle].pop(0)
        if random.random() < 0.2:
            parts.append(frames.session_window(0, 1000))
    return b"".join(parts)


def read_in_pieces(data: bytes, random: Random) -> list[bytes]:
    cuts = sorted(random.randint(0, len(data)) for _ in range(random.randrange(READS_MAX)))
    return [data[low:high] for low, high in pairwise([0, *cuts, len(data)]) if low < high]


def begun(peer: Conversation) -> bytes:
    """A transaction's id."""
    [answer] = [seen for seen in peer.say(frames.declare(peer.number())) if seen.name == "disposition"]
    name: bytes = answer.field(4).value[0]
    return name


def answers(seen: list[Seen]) -> dict[int, str | None]:
    """Delivery-id -> the outcome that was heard last."""
    outcomes: dict[int, str | None] = {}
    for frame in seen:
        if frame.name == "disposition" and frame.field(0):
            last = frame.field(1) if frame.field(2) is None else frame.field(2)
            outcomes |= dict.fromkeys(range(frame.field(1), last + 1), frame.state)
    return outcomes


def run(random: Random) -> None:
    realm = ScriptedRealm()
    peer = Conversation(build_gateway(TABLES, realm))
    peer.say(frames.attach_sender(frames.COORDINATOR, 7, "control"))
    transactions = [begun(peer) for _ in range(2)]
    for handle, node in LINKS.items():
        peer.say(frames.attach_sender(node, handle, node))
    streams = {
        handle: [drawn(random, handle, at, transactions) for at in range(random.randint(1, MESSAGES_MAX))]
        for handle in LINKS
    }
    heard = peer.say(mixed(peer, streams, random), cut=lambda data: read_in_pieces(data, random))
    messages = [message for stream in streams.values() for message in stream if not message.aborted]
    promised = {post.number: "transactional accepted" if post.transaction else "accepted" for post in messages}
    unsettled = {post.number for post in messages if not post.settled}
    assert answers(heard) == {number: promised[number] for number in unsettled}
    fails = {transaction: random.random() < 0.5 for transaction in transactions}
    for transaction in transactions:
        number = peer.number()
        reply = peer.say(frames.discharge(number, transaction, fail=fails[transaction]))
        assert answers(reply)[number] == "accepted"
    for handle, node in LINKS.items():
        kept = [post for post in streams[handle] if not (post.aborted or fails.get(post.transaction or b"", False))]
        assert sorted(realm.store(node).values.values()) == sorted(post.body for post in kept)
    assert not [seen for seen in peer.seen if seen.name in ("detach", "end", "close")]


@settings(max_examples=250)
@given(st.integers(0, 2**32))
def test_messages_of_several_links_in_several_transfers_are_each_stored_whole(seed: int) -> None:
    run(Random(seed))
