"""A piece of events to copy: each EID of its runs is kept, gone or left, whatever the log has and whatever fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from native_backend.dispatch.copy_piece import CopyPiece
from native_backend.log.port import Records
from native_backend.state.ack_state import Run

LOST, UNWANTED = None, b"unwanted"


def expanded(runs: list[Run]) -> list[int]:
    return [eid for first, last, _, _ in runs for eid in range(first, last + 1)]


@given(
    stored=st.dictionaries(st.integers(0, 30), st.sampled_from([b"x", b"yyyy", LOST, UNWANTED])),
    events_max=st.integers(1, 8),
    eids_max=st.integers(1, 20),
    bytes_max=st.integers(1, 12),
    step=st.integers(1, 7),
)
def test_each_eid_is_in_a_piece_once(
    stored: dict[int, bytes | None], events_max: int, eids_max: int, bytes_max: int, step: int
) -> None:
    def read(start: int, count: int) -> Records:
        end = start + min(count, step)
        eids = [eid for eid in range(start, end) if eid in stored]
        keys = [b"k" if stored[eid] != UNWANTED else UNWANTED for eid in eids]
        return Records(eids, [0] * len(eids), list(keys), [stored[eid] for eid in eids], end)

    runs: list[Run] = [(2, 9, 0, 1), (12, 12, 0, 12), (14, 28, 0, 13)]
    copied: list[int] = []
    left = runs
    while left:
        piece = CopyPiece(events_max, eids_max, bytes_max, lambda key: key != UNWANTED)
        piece.read(left, read)
        assert sorted(expanded(piece.kept) + expanded(piece.gone) + expanded(piece.rest)) == expanded(left)
        assert expanded(piece.kept) == piece.eids and len(piece.eids) <= events_max
        assert len(piece.eids) < 2 or sum(map(len, piece.values[:-1])) < bytes_max
        assert [stored[eid] for eid in piece.eids] == piece.values
        copied += piece.eids
        assert piece.rest != left, "it goes on"
        left = piece.rest
    assert copied == [eid for eid in expanded(runs) if stored.get(eid) not in (LOST, UNWANTED)]
