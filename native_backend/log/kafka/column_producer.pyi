"""See column_producer.c."""

from native_backend.log.columns import Strings

class ColumnProducer:
    def __init__(self, extension: str, settings: dict[str, str], /) -> None: ...
    def produce(
        self,
        topic: str,
        partition: int,
        keys: Strings,
        values: Strings,
        offsets: list[int],
        errors: list[tuple[int, int, str]],
        /,
    ) -> list[tuple[int, int, str]]: ...
    def poll(self) -> list[tuple[str, int, str]]: ...
    def look_up(self, topic: str, timeout_ms: int, /) -> None: ...
    def wake(self, descriptor: int, /) -> None: ...
    def close(self) -> None: ...
