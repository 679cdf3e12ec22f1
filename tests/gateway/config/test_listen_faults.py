"""Addresses that cannot be listened at: FILE:LINE, the address and what to write, all at once; and nothing is left."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway

EXIT_S = 90.0  # it has to start first, on whatever machine


def refused(gateway: GatewayProcess) -> list[str]:
    """What it says when it does not start."""
    gateway.launch()
    assert gateway.process is not None
    gateway.process.wait(EXIT_S)
    assert gateway.await_exit() == 2
    lines = gateway.log_path.read_text().splitlines()
    assert not any("Traceback" in line for line in lines), lines
    return [line for line in lines if line.startswith(str(gateway.config_path))]


def test_unknown_names_and_addresses_of_other_machines_are_reported_together(tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), admin={"listen": "http://no-such-host.invalid:9464"})
    gateway.host = "nor-this.invalid"
    gateway.more = ["ws"]
    gateway.ports = {"ws": 0}
    lines = refused(gateway)
    assert len(lines) == 2, lines
    names = (
        f"amqp://nor-this.invalid:{gateway.port}: listen: nor-this.invalid",
        "no-such-host.invalid:9464: admin.listen: ",
    )
    for line, words in zip(lines, names, strict=True):
        assert words in line and "means no address here" in line and "; write an address of this machine" in line
    assert not (tmp_path / "realm").exists(), "nothing was opened"


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
    gateway.host = "192.0.2.1"
    [line] = refused(gateway)
    assert "listen: 192.0.2.1: Cannot assign requested address; write an address of this machine" in line


def test_ports_in_use_are_reported_together_and_the_realm_is_released(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as other:
        gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
        gateway.port, gateway.more = first.getsockname()[1], ["ws"]
        gateway.ports = {"ws": other.getsockname()[1]}
        lines = refused(gateway)
        assert len(lines) == 2, lines
        for line, scheme, taken in zip(lines, ("amqp", "ws"), (first, other), strict=True):
            port = taken.getsockname()[1]
            assert f"{scheme}://127.0.0.1:{port}: listen: Address already in use; stop what" in line
    gateway.start()
    assert gateway.stop() == 0


def test_tables_with_problems_are_reported_beside_it(tmp_path: Path) -> None:
    tables = tmp_path / "ours" / "tables"
    tables.mkdir(parents=True)
    (tables / "published.yaml").write_text("table: published\n")
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), mappings={"dir": str(tmp_path / "ours")})
    gateway.host = "nor-this.invalid"
    gateway.launch()
    assert gateway.process is not None
    gateway.process.wait(EXIT_S)
    assert gateway.await_exit() == 2
    assert "nor-this.invalid means no address here" in gateway.log()
    assert "published.yaml:" in gateway.log()
