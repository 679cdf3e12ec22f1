"""The units of deploy/systemd: systemd reads them without a complaint, they give away little, and what they demand of
the gateway (Type=notify, a watchdog, exit codes) a real one does. systemd-analyze is a prerequisite of `make test`.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.patience import HANG_S
from tests.kit.processes.broker import free_port
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, embedded_realm, make_gateway

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICES = ("realmgate.service", "realmgate-reconcile.service", "realmgate-console.service")
INSTALLED = "/opt/realmgate/bin/realmgate"
EXPOSURE_MAX = 3.0
WAIT_S = 90.0
HANGING = """
    import sys, time
    from pathlib import Path
    from gateway.cli import main
    from gateway.config import limits
    limits.TURN_AGE_MAX_S = 0.5
    from gateway.session.gateway import Gateway
    poll, file = Gateway.poll, Path(sys.argv.pop(1))

    def hanging(self):
        while file.exists():
            time.sleep(0.01)
        poll(self)

    Gateway.poll = hanging
    main.main()
"""


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """As installed, but that the program is this one: systemd looks whether it is there."""
    for unit in UNITS.iterdir():
        (tmp_path / unit.name).write_text(unit.read_text().replace(INSTALLED, str(REALMGATE)))
    return tmp_path


def analyzed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False, timeout=300)


def complaints(units: Path) -> str:
    done = analyzed(
        "verify", "--man=no", *sorted(units.glob("realmgate*.[st][ei]*r")), *sorted(units.glob("*.service"))
    )
    return done.stderr + (f"exit code {done.returncode}" if done.returncode else "")


def exposure(unit: Path) -> float:
    done = analyzed("security", "--offline=true", "--no-pager", unit)
    [level] = re.findall(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    return float(level)


def of(unit: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", (UNITS / unit).read_text(), re.MULTILINE)


def test_systemd_reads_the_units_without_a_complaint(units: Path) -> None:
    assert complaints(units) == ""


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("NoNewPrivilege=yes", "'NoNewPrivilege'"),
        ("ExecStartPre=/no/such", "/no/such is not executable"),
    ],
)
def test_a_wrong_key_and_a_missing_program_are_found(units: Path, wrong: str, complaint: str) -> None:
    unit = units / "realmgate.service"
    unit.write_text(unit.read_text().replace("[Service]\n", f"[Service]\n{wrong}\n"))
    assert complaint in complaints(units)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_gives_away_little(units: Path, service: str) -> None:
    assert exposure(units / service) <= EXPOSURE_MAX


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_without_its_hardening_gives_away_too_much(units: Path, service: str) -> None:
    unit = units / service
    unit.write_text(re.sub(r"^(Protect|Private|Restrict|System|Capab|NoNew).*\n", "", unit.read_text(), flags=re.M))
    assert exposure(unit) > EXPOSURE_MAX


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_a_user_of_its_own_that_sysusers_makes(tmp_path: Path, service: str) -> None:
    (tmp_path / "etc").mkdir()
    made = subprocess.run(
        ["systemd-sysusers", "--dry-run", f"--root={tmp_path}", UNITS / "realmgate.sysusers"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    users = set(re.findall(r"Creating user '(\w+)'", made.stdout + made.stderr))
    assert users == {*of(service, "User")} == {*of(service, "Group")} == {"realmgate"}


@pytest.mark.parametrize("service", SERVICES)
def test_what_a_service_starts_is_a_command_line_that_realmgate_takes(service: str) -> None:
    """It gets as far as the configuration, which is not there."""
    [start] = of(service, "ExecStart")
    program, *arguments = start.split()
    assert program == INSTALLED
    done = subprocess.run([REALMGATE, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "/etc/realmgate/realmgate.yaml" in done.stderr and "usage" not in done.stderr, done.stderr


def test_a_mistake_in_the_configuration_does_not_start_it_again_and_being_taken_over_does() -> None:
    for service in ("realmgate.service", "realmgate-console.service"):
        assert (of(service, "Restart"), of(service, "RestartPreventExitStatus")) == (["always"], ["2"]), service


def test_the_timer_starts_the_reconciliation_every_night() -> None:
    [when] = of("realmgate-reconcile.timer", "OnCalendar")
    done = analyzed("calendar", "--base-time=2026-11-23 00:00:00", when)
    assert done.returncode == 0, done.stderr
    assert "Next elapse: Mon 2026-11-23 03:17:00" in done.stdout
    assert (UNITS / "realmgate-reconcile.service").exists()


# -- what Type=notify demands of the gateway


class Notified:
    """What a gateway has said to systemd. `lines`: all, in order."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self.lines: list[str] = []

    def until(self, reached: Callable[[list[str]], bool]) -> None:
        end = time.monotonic() + WAIT_S
        while not reached(self.lines):
            self._socket.settimeout(max(end - time.monotonic(), 0.001))
            self.lines += self._socket.recv(4096).decode().split("\n")

    def heard_in(self, seconds: float) -> list[str]:
        """What comes within a while, and what had come before it."""
        known, end = len(self.lines), time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                self.lines += self._socket.recv(4096).decode().split("\n")
            except TimeoutError:
                break
        return self.lines[known:]

    def close(self) -> None:
        self._socket.close()


@contextmanager
def started_by_systemd(
    directory: Path, name: str, program: list[str] | None = None
) -> Iterator[tuple[GatewayProcess, Notified]]:
    notified = Notified(directory / f"{name}.notify")
    gateway = make_gateway(directory / name, embedded_realm(directory))
    gateway.environment = {"NOTIFY_SOCKET": str(directory / f"{name}.notify"), "WATCHDOG_USEC": "600000"}
    gateway.program, gateway.port = program or gateway.program, free_port()
    gateway.launch()
    try:
        yield gateway, notified
    finally:
        gateway.kill()
        notified.close()


def test_it_says_that_it_is_ready_that_it_lives_and_that_it_stops(tmp_path: Path) -> None:
    with started_by_systemd(tmp_path, "one") as (gateway, notified):
        notified.until(lambda lines: "READY=1" in lines and any(line.startswith("STATUS=serving") for line in lines))
        assert f"STATUS=serving at amqp://127.0.0.1:{gateway.port}" in notified.lines
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG_S):
            pass  # ready means that a peer can connect
        heard = len(notified.lines)
        notified.until(lambda lines: lines[heard:].count("WATCHDOG=1") >= 3)
        assert "STOPPING=1" not in notified.lines
        assert gateway.stop() == 0
        notified.until(lambda lines: "STOPPING=1" in lines)
        assert notified.lines.count("READY=1") == 1


def test_a_standby_is_ready_and_lives_and_says_what_it_waits_for(tmp_path: Path) -> None:
    with started_by_systemd(tmp_path, "one") as (first, of_first):
        of_first.until(lambda lines: "READY=1" in lines)
        with started_by_systemd(tmp_path, "two") as (second, of_second):
            of_second.until(lambda lines: "READY=1" in lines)
            assert any(re.match("STATUS=standby: gateway .* owns the realm", line) for line in of_second.lines)
            heard = len(of_second.lines)
            of_second.until(lambda lines: lines[heard:].count("WATCHDOG=1") >= 3)
            assert first.stop() == 0
            serving = f"STATUS=serving at amqp://127.0.0.1:{second.port}"
            of_second.until(lambda lines: serving in lines)


def test_a_gateway_whose_turns_hang_does_not_report_as_alive(tmp_path: Path) -> None:
    file = tmp_path / "hangs"
    program = [sys.executable, "-c", textwrap.dedent(HANGING), str(file)]
    with started_by_systemd(tmp_path, "one", program) as (_, notified):
        notified.until(lambda lines: "READY=1" in lines and "WATCHDOG=1" in lines[lines.index("READY=1") :])
        file.touch()
        end = time.monotonic() + WAIT_S
        while "WATCHDOG=1" in notified.heard_in(2.0):
            assert time.monotonic() < end, "it is said to live, though it hangs"
        file.unlink()
        heard = len(notified.lines)
        notified.until(lambda lines: "WATCHDOG=1" in lines[heard:])


def test_a_socket_that_is_gone_is_logged_once_and_changes_nothing(tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
    gateway.environment = {"NOTIFY_SOCKET": str(tmp_path / "nothing"), "WATCHDOG_USEC": "300000"}
    gateway.start()
    gateway.await_log("takes nothing")
    time.sleep(0.5)  # it has tried several times more
    assert gateway.stop() == 0
    assert gateway.log().count("takes nothing") == 1
