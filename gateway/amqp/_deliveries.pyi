"""See _deliveries.c. Pointers are ints."""

from collections.abc import Iterable

from native_backend.log.octets import Octets

def bind(extension: str, /) -> None: ...
def know(delivery_event: int, /) -> None: ...
def read_transfers(
    collector: int,
    link: int,
    size_max: int,
    messages: Octets,
    presettled: list[int],
    arrived: list[int],
    /,
) -> bool: ...
def read_run(
    collector: int,
    link: int,
    stream: bytes | memoryview,
    places: bytes,
    taken: int,
    messages: Octets,
    presettled: list[int],
    arrived: list[int],
    /,
) -> int: ...
def read_accepted(
    collector: int, link: int, unsettled: dict[int, tuple[int, int]], seqs: list[int], eids: list[int], /
) -> None: ...
def settle(deliveries: dict[int, int], seqs: Iterable[int], state: int, settles: bool, /) -> None: ...
def settle_run(run: list[int], state: int, /) -> None: ...
