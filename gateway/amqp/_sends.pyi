"""See _sends.c. Pointers are ints."""

from collections.abc import Sequence

def bind(extension: str, /) -> None: ...
def send(
    transport: int,
    link: int,
    tag_prefix: bytes,
    first_seq: int,
    eids: list[int],
    values: Sequence[bytes],
    unsettled: dict[int, tuple[int, int]] | None,
    /,
) -> None: ...
def send_run(
    transport: int,
    link: int,
    tag_prefix: bytes,
    first_seq: int,
    eids: list[int],
    values: Sequence[bytes],
    unsettled: dict[int, tuple[int, int]] | None,
    /,
) -> bytes | None: ...
def window(link: int, /) -> int: ...
