"""Whether a library that parts in C call is of a version that they were written for: they state its functions and
structures again, and nothing else compares those when the library is loaded.

Source: semantic versioning of librdkafka (a major version keeps `rd_kafka_message_t`); proton, below 1.0, may change
with each minor version.
"""

from __future__ import annotations

Version = tuple[int, ...]
"""Major, minor, and perhaps more."""


class WrongLibrary(ImportError):
    """Nothing is to be served with it; the text names both versions and what to do."""


def require(library: str, loaded: Version, first: Version, below: Version, remedy: str) -> None:
    """Raises `WrongLibrary` unless `first <= loaded < below`."""
    if not first <= loaded < below:
        raise WrongLibrary(
            f"{library} {_text(loaded)} is loaded, and this release is built for {_text(first)} and later below "
            f"{_text(below)}: {remedy}"
        )


def _text(version: Version) -> str:
    return ".".join(map(str, version))
