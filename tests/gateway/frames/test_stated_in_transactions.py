"""How many deliveries are given an outcome inside a transaction: the same number however the stream is cut."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.frames.frames import Frame
from gateway.frames.stated_in_transactions import Stated, stated_by
from tests.gateway.frames.frame_cases import ATTACHED, MESSAGE, pieces_of
from tests.kit.wire import frames
from transformers.codec import Described, Symbol, ULong


def named(chunks: list[bytes]) -> Counter[tuple[int, bytes]]:
    """How many deliveries are given an outcome inside transactions: in plain runs, and in frames that stand alone."""
    deliveries: Counter[tuple[int, bytes]] = Counter()
    for *_, frame in pieces_of(chunks):
        stated = stated_by(frame) if isinstance(frame, Frame) else frame
        if isinstance(stated, Stated):
            deliveries.update(stated.named)
    return deliveries


def in_transaction(transaction: bytes, first: int, last: int, plain: bool = True, channel: int = 0) -> bytes:
    outcome = frames.state("accepted") if plain else frames.state("rejected", Described(ULong(0x1D), [Symbol("a:b")]))
    return frames.disposition(first, last, frames.in_transaction(transaction, outcome), channel=channel)


STATED = [
    *(in_transaction(b"t", number, number) for number in range(5)),
    *(in_transaction(b"u", number, number + 1) for number in range(5, 11, 2)),
    in_transaction(b"t", 11, 20, plain=False),
    frames.disposition(21, 30, frames.state("accepted")),
    in_transaction(b"tt", 31, 31),
    in_transaction(b"t", 0, 2),
    in_transaction(b"t", 0, 0, channel=1),
    frames.disposition(0, 1, frames.in_transaction(b"t"), sender=True),
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 700), max_size=20))
@example([])
def test_outcomes_inside_transactions_are_counted_however_the_stream_is_cut(cuts: list[int]) -> None:
    begun = b"".join([*ATTACHED, frames.transfer(0, MESSAGE), frames.transfer(1, MESSAGE), frames.begin(1)])
    stream = b"".join(STATED)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [begun, *(stream[begin:end] for begin, end in pairwise(edges))]
    expected = {(0, b"t"): 5 + 10 + 3, (0, b"u"): 6, (0, b"tt"): 1, (1, b"t"): 1}
    assert named(chunks) == expected


def test_what_a_transaction_is_discharged_with_comes_behind_what_was_stated_in_it() -> None:
    """In one stream: the run of dispositions is pushed, and compared, before the transfer is."""
    kinds = [type(frame) for *_, frame in pieces_of([b"".join([*ATTACHED, STATED[0], frames.transfer(0, MESSAGE)])])]
    assert kinds[-2:] == [Stated, type(None)]
