"""Hosts of one machine whose packets to each other can be lost: each is a network namespace, and one bridge joins them.

    network = Network(3)
    network.part([(1, 2)])   # what host 1 sends does not reach host 2; the other direction goes on
    network.heal(); network.close()

This process is in the root namespace, reaches every host, and is reached by each. Needs root, `ip` and `nft`. What a
process that was killed left behind: `ip netns`, `ip link`, by the names of `Network.name`.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable

NAME = "rgate"  # with a number behind it; an interface's name has 15 characters at most
TRIES = 20
TABLE = "table ip parted { chain input { type filter hook input priority 0; }; }"


class NoNamespacesError(Exception):
    """This machine makes none; its words say why."""


class Network:
    """See the module's docstring. Hosts are numbered from 1. Raises NoNamespacesError."""

    def __init__(self, count: int) -> None:
        self.hosts = range(1, count + 1)
        self._number = self._bridge()
        self.name = f"{NAME}{self._number}"
        try:
            _run("ip", "addr", "add", f"{self._address(254)}/24", "dev", self.name)
            _run("ip", "link", "set", self.name, "up")
            for host in self.hosts:
                self._add(host)
        except NoNamespacesError:
            self.close()
            raise

    @staticmethod
    def _bridge() -> int:
        """Whose name is taken has a bridge already: so two networks have two numbers."""
        for number in random.sample(range(256), TRIES):
            try:
                _run("ip", "link", "add", f"{NAME}{number}", "type", "bridge")
            except NoNamespacesError as why:
                if "exists" not in str(why):
                    raise
            else:
                return number
        raise NoNamespacesError(f"{TRIES} bridges have the names of ours: ip link")

    def _address(self, last: int) -> str:
        return f"198.18.{self._number}.{last}"  # RFC 2544: for measurements, no one's network

    def address(self, host: int) -> str:
        """IPv4."""
        return self._address(host)

    def command(self, host: int) -> list[str]:
        """What stands before a command that is to run on that host."""
        return ["ip", "netns", "exec", self.namespace(host)]

    def namespace(self, host: int) -> str:
        return f"{self.name}-{host}"

    def _add(self, host: int) -> None:
        namespace, near = self.namespace(host), f"{self.name}.{host}"
        _run("ip", "netns", "add", namespace)
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        _run("ip", "link", "set", near, "master", self.name, "up")
        _run("ip", "-n", namespace, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        for interface in ("eth0", "lo"):
            _run("ip", "-n", namespace, "link", "set", interface, "up")
        _run(*self.command(host), "nft", TABLE)

    def part(self, ways: Iterable[tuple[int, int]]) -> None:
        """From now on what the first sends does not reach the second. A way twice is the same as once."""
        for sender, receiver in ways:
            rule = f"add rule ip parted input ip saddr {self.address(sender)} counter drop"
            _run(*self.command(receiver), "nft", rule)

    def heal(self) -> int:
        """All hear all again. How many packets were lost since."""
        lost = 0
        for host in self.hosts:
            chain = _run(*self.command(host), "nft", "-j", "list chain ip parted input")
            rules = [entry["rule"] for entry in json.loads(chain)["nftables"] if "rule" in entry]
            lost += sum(part["counter"]["packets"] for rule in rules for part in rule["expr"] if "counter" in part)
            _run(*self.command(host), "nft", "flush chain ip parted input")
        return lost

    def close(self) -> None:
        """Processes of its hosts have ended. Closing what was made in part is no error."""
        for host in self.hosts:
            subprocess.run(["ip", "link", "del", f"{self.name}.{host}"], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "del", self.namespace(host)], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self.name], capture_output=True, check=False)


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as why:
        raise NoNamespacesError(f"{why.filename} is missing: apt-get install iproute2 nftables") from why
    if done.returncode:
        raise NoNamespacesError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
