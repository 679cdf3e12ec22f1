"""Long runs of messages: payloads go past the protocol engine, and arrive as they would one by one."""

from __future__ import annotations

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import UInt

SHORT = [frames.message(b"%d " % number * (number % 40 + 1)) for number in range(40)]
LONG = frames.message(bytes(range(256)) * 1000)  # several frames


def test_a_session_window_bounds_what_is_sent_at_once(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, *SHORT)
        peer.consumer(node)
        peer.send(frames.flow(1, 40, window=2))
        got = peer.receive(2)
        peer.send(frames.session_window(2, 5))
        got += peer.receive(5)
        peer.send(frames.session_window(7, 1_000))
        got += peer.receive(33)
    assert [event.payload for event in got] == SHORT


def test_messages_of_several_frames_among_others(gateway: GatewayProcess, node: str) -> None:
    payloads = [*SHORT[:10], LONG, *SHORT[10:20], LONG, LONG, *SHORT[20:]]
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        stream = b""
        for number, payload in enumerate(payloads):
            parts = [payload[at : at + 60_000] for at in range(0, len(payload), 60_000)]
            for part in parts[:-1]:
                stream += frames.transfer(number, part, more=True)
            stream += frames.transfer(number, parts[-1])
        peer.send(stream)
        assert peer.outcomes(len(payloads)) == dict.fromkeys(range(len(payloads)), "accepted")
        peer.consumer(node, credit=len(payloads))
        assert [event.payload for event in peer.receive(len(payloads))] == payloads


def test_runs_of_two_links_do_not_mix(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publisher(f"{node}.other", handle=2)
        halves = SHORT[:20], SHORT[20:]
        numbers = iter(range(40))
        stream = b"".join(frames.transfer(next(numbers), message) for message in halves[0][:10])
        stream += b"".join(frames.transfer(next(numbers), message, handle=2) for message in halves[1])
        stream += b"".join(frames.transfer(next(numbers), message) for message in halves[0][10:])
        peer.send(stream)
        assert len(peer.outcomes(40)) == 40
        peer.consumer(node)
        peer.consumer(f"{node}.other", handle=3, name="another")
        peer.credit(40)
        peer.credit(40, 3)
        got: dict[int, list[bytes]] = {}
        while sum(map(len, got.values())) < 40:
            seen = peer.expect("transfer")
            got.setdefault(int(seen.field(0)), []).append(seen.payload)
    assert sorted(got.values()) == sorted(map(list, halves))


def test_what_comes_settled_in_a_run_is_stored(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, mode=1)
        peer.publish(*SHORT, settled=True)
        peer.consumer(node, credit=40)
        assert [event.payload for event in peer.receive(40)] == SHORT


@pytest.mark.requirement("P-4")
@pytest.mark.parametrize("fields", ["few", "many"])
@pytest.mark.parametrize("before", [0, 1, 10], ids=["alone", "behind one", "in a run"])
def test_a_tag_of_more_than_32_octets_ends_its_link_and_no_other(
    gateway: GatewayProcess, node: str, before: int, fields: str
) -> None:
    """What came before it counts, what comes behind it does not; the session goes on counting."""
    longest, too_long = b"t" * 32, b"t" * 33

    def transfer(number: int, tag: bytes, handle: int = 0) -> bytes:
        if fields == "many":
            return frames.transfer(number, SHORT[0], handle, tag=tag)
        return frames.frame(frames.TRANSFER, [UInt(handle), UInt(number), tag], SHORT[0])

    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publisher(f"{node}.other", handle=2)
        numbers = iter(range(100))
        good = [next(numbers) for _ in range(before)]
        stream = b"".join(transfer(number, longest) for number in good)
        stream += transfer(next(numbers), too_long)
        stream += b"".join(transfer(next(numbers), longest) for _ in range(before))
        others = [next(numbers) for _ in range(before + 1)]
        stream += b"".join(transfer(number, longest, 2) for number in others)
        peer.send(stream)
        states: dict[int, str | None] = {}
        condition = ""
        while len(states) < len(good + others) or not condition:
            (seen,) = peer.frames(1)
            if seen.name == "detach":
                assert seen.field(0) == peer.gateway_handles[0]
                condition = str(seen.condition)
            elif seen.name == "disposition":
                last = seen.field(1) if seen.field(2) is None else seen.field(2)
                states.update(dict.fromkeys(range(seen.field(1), last + 1), seen.state))
            else:
                assert seen.name == "flow", seen
            if condition and set(states) >= set(others):
                break
        assert condition == "amqp:invalid-field"
        assert set(states) <= {*good, *others} and set(states.values()) == {"accepted"}
