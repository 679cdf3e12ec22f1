"""Long runs of messages: payloads go past the protocol engine, and arrive as they would one by one."""

from __future__ import annotations

from tests.gateway_process import GatewayProcess
from tests.wire import frames
from tests.wire.peer import Peer

SHORT = [frames.message(b"%d " % number * (number % 40 + 1)) for number in range(40)]
LONG = frames.message(bytes(range(256)) * 1000)  # several frames


def test_a_session_window_bounds_what_is_sent_at_once(house: GatewayProcess, node: str) -> None:
    with Peer(house.port) as peer:
        peer.stored(node, *SHORT)
        peer.consumer(node)
        peer.send(frames.flow(1, 40, window=2))
        got = peer.receive(2)
        peer.send(frames.session_window(2, 5))
        got += peer.receive(5)
        peer.send(frames.session_window(7, 1_000))
        got += peer.receive(33)
    assert [each.payload for each in got] == SHORT


def test_messages_of_several_frames_among_others(house: GatewayProcess, node: str) -> None:
    payloads = [*SHORT[:10], LONG, *SHORT[10:20], LONG, LONG, *SHORT[20:]]
    with Peer(house.port) as peer:
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
        assert [each.payload for each in peer.receive(len(payloads))] == payloads


def test_runs_of_two_links_do_not_mix(house: GatewayProcess, node: str) -> None:
    with Peer(house.port) as peer:
        peer.publisher(node)
        peer.publisher(f"{node}.other", handle=2)
        halves = SHORT[:20], SHORT[20:]
        numbers = iter(range(40))
        stream = b"".join(frames.transfer(next(numbers), each) for each in halves[0][:10])
        stream += b"".join(frames.transfer(next(numbers), each, handle=2) for each in halves[1])
        stream += b"".join(frames.transfer(next(numbers), each) for each in halves[0][10:])
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


def test_what_comes_settled_in_a_run_is_stored(house: GatewayProcess, node: str) -> None:
    with Peer(house.port) as peer:
        peer.publisher(node, mode=1)
        peer.publish(*SHORT, settled=True)
        peer.consumer(node, credit=40)
        assert [each.payload for each in peer.receive(40)] == SHORT
