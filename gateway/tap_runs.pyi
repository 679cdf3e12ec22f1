"""See tap_runs.c."""

def cut(
    data: memoryview | bytes, position: int, frame_size_max: int, message_size_max: int, /
) -> tuple[int, bytes, bytes] | None: ...
