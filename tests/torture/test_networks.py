"""Packets are lost on the ways that were parted, and on no other, until they are healed."""

from __future__ import annotations

import ctypes
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest

from tests.kit.patience import until
from tests.kit.processes.networks import Network, NoNamespacesError
from tests.kit.processes.toolchains import NEEDS_NAMESPACES
from tests.torture.__main__ import main

PORT = 9092
HOSTS = (1, 2, 3)
Way = tuple[int, int]


class Hosts:
    """One UDP socket on each host."""

    def __init__(self, network: Network, stack: ExitStack) -> None:
        self.network = network
        self._sockets = {host: stack.enter_context(self._socket(host)) for host in network.hosts}

    def _socket(self, host: int) -> socket.socket:
        """A socket stays in the namespace of the thread that made it."""
        made: list[socket.socket] = []

        def make() -> None:
            with Path(f"/run/netns/{self.network.namespace(host)}").open() as namespace:
                assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        made[0].bind((self.network.address(host), PORT))
        made[0].setblocking(False)
        return made[0]

    def heard(self) -> set[Way]:
        """Each says one word to each other one; a packet on a veth has arrived when it was sent."""
        for sender, receiver in permutations(self.network.hosts, 2):
            self._sockets[sender].sendto(bytes([sender]), (self.network.address(receiver), PORT))
        ways: set[Way] = set()
        for receiver, end in self._sockets.items():
            while True:
                try:
                    ways.add((end.recv(1)[0], receiver))
                except BlockingIOError:
                    break
        return ways


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    network = Network(len(HOSTS))
    with ExitStack() as stack:
        stack.callback(network.close)
        yield Hosts(network, stack)


@NEEDS_NAMESPACES
def test_what_is_parted_is_lost_and_nothing_else(hosts: Hosts) -> None:
    everything = {*permutations(HOSTS, 2)}
    until(lambda: hosts.heard() == everything, "the network to be up, and the addresses of the others")
    for ways in ([(1, 2)], [(3, 1), (3, 2)], [(2, 1), (1, 2)]):
        hosts.network.part(ways)
        assert hosts.heard() == everything - {*ways}
        assert hosts.network.heal() == len(ways)
        assert hosts.heard() == everything
    assert hosts.network.heal() == 0


@NEEDS_NAMESPACES
def test_two_networks_stand_beside_each_other_and_leave_nothing() -> None:
    first, second = Network(1), Network(1)
    assert first.name != second.name
    places = [Path("/sys/class/net", network.name) for network in (first, second)]
    places += [Path("/run/netns", network.namespace(1)) for network in (first, second)]
    assert all(place.exists() for place in places), places
    for network in (first, second):
        network.close()
    assert not any(place.exists() for place in places), places


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ip` may do nothing."""
    (tmp_path / "ip").write_text("#!/bin/sh\necho 'Operation not permitted' >&2\nexit 2\n")
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_machine_that_lacks_ip_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoNamespacesError, match="ip is missing: apt-get install iproute2"):
        Network(3)


@pytest.mark.usefixtures("refused")
def test_a_run_says_that_brokers_cannot_be_parted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["torture", "--realm", "cluster", "--only", "part brokers"])
    assert main() == 2
    left_out, refusal = capsys.readouterr().err.splitlines()
    assert left_out.startswith("'part brokers' is left out") and left_out.endswith("bridge: Operation not permitted")
    assert "'part brokers' cannot go wrong here" in refusal and "kill kafka" in refusal
