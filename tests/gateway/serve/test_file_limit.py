"""Descriptors: the soft limit is raised, and where the hard one is too low fewer connections are served."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.serve import file_limit as descriptors
from tests.kit.processes.gateway import StartGateway

INFINITE = resource.RLIM_INFINITY


@pytest.fixture
def lowered() -> Iterator[None]:
    """What is started meanwhile has a low soft limit, as on most machines."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_gateway_raises_its_soft_limit(lowered: None, new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded", limits={"connections": 1_000})
    [line] = [text for text in Path(f"/proc/{gateway.pid}/limits").read_text().splitlines() if "open files" in text]
    assert int(line.split()[3]) == 1_000 + descriptors.OWN


@pytest.mark.parametrize(("hard", "soft"), [(INFINITE, 17_256), (65_536, 17_256), (8_192, 8_192)])
def test_stores_get_descriptors_as_far_as_there_are_some(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hard: int, soft: int
) -> None:
    now = [(1024, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[0])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: now.__setitem__(0, wanted))
    assert descriptors.raise_file_limit(1_000, 16_000) == 1_000, "no connection less for them"
    assert now[0] == (soft, hard) and not caplog.text


@pytest.mark.parametrize(
    ("limits", "refuses", "room", "soft"),
    [
        ((1024, 4096), False, 1_000, 1_256),
        ((8192, 8192), False, 1_000, 8_192),
        ((INFINITE, INFINITE), False, 1_000, INFINITE),
        ((1024, INFINITE), False, 1_000, 1_256),
        ((1024, 1024), False, 768, 1_024),
        ((256, 1024), False, 768, 1_024),
        ((256, 256), False, 128, 256),
        ((1024, 4096), True, 768, 1_024),
    ],
)
def test_what_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limits: tuple[int, int],
    refuses: bool,
    room: int,
    soft: int,
) -> None:
    now = [limits]

    def set_limits(_: int, wanted: tuple[int, int]) -> None:
        if refuses:
            raise OSError("not here")
        now[0] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: now[0])
    monkeypatch.setattr(resource, "setrlimit", set_limits)
    assert descriptors.raise_file_limit(1_000) == room
    assert now[0] == (soft, limits[1])
    warning = "LimitNOFILE" in caplog.text and f"serves {room} connections" in caplog.text
    assert warning == (room < 1_000)
