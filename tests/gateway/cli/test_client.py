"""`realmgate send` and `receive` over a real gateway process: outcomes, exit codes, and no password in their output."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.cli.client import command
from gateway.cli.client.connection import NO_ANSWER, Outcome
from gateway.cli.main import run
from tests.kit.patience import HANG_S
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import (
    COMMAND_TIMEOUT_S,
    REALMGATE,
    GatewayProcess,
    StartGateway,
    embedded_realm,
    make_gateway,
    realmgate,
)
from tests.kit.rewriting import rewrite
from tests.kit.wire.frames import sasl_frame
from tests.kit.wire.logins import PASSWORD, read_frame, write_users
from transformers.codec import Symbol, UByte

WAIT = ("--timeout", "60")
NO_LOGIN: dict[str, str] = {}
SOON = ("--timeout", "2")  # for what does not come


def ran(
    gateway: GatewayProcess, *words: str, url: str = "", stdin: bytes = b"", environment: dict[str, str] = NO_LOGIN
) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout, stderr."""
    if not stdin and not environment:
        code, printed, complaints = realmgate(*words, "--url", url or f"amqp://{gateway.address}")
        return code, printed.splitlines(), complaints
    done = subprocess.run(
        [REALMGATE, *words, "--url", url or f"amqp://{gateway.address}"],
        input=stdin, capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False, env=os.environ | environment,
    )  # fmt: skip
    return done.returncode, done.stdout.decode().splitlines(), done.stderr.decode()


def test_what_is_sent_is_received(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    words = ("--property", "colour=red", "--property", "size=a=b", "--subject", "shoes", "--count", "2")
    code, lines, err = ran(gateway, "send", "orders", "--body", "Grüße", *words, *WAIT)
    assert (code, err) == (0, "")
    assert [line.split("  ")[:2] for line in lines] == [["1", "accepted"], ["2", "accepted"]]
    ids = [line.rpartition("message-id ")[2] for line in lines]
    code, lines, err = ran(gateway, "receive", "orders", "--count", "2", "--json", *WAIT)
    assert (code, err) == (0, "")
    got = [json.loads(line) for line in lines]
    assert [row["id"] for row in got] == ids
    for row in got:
        assert (row["body"], row["subject"], row["durable"], row["outcome"]) == ("Grüße", "shoes", True, "accepted")
        assert row["properties"] == {"colour": "red", "size": "a=b"}
        assert row["content_type"] is row["reply_to"] is row["group_id"] is None
    traced = json.loads(gateway.command("trace", got[0]["tag"], "--json"))
    assert traced["found"], "its tag is the one that trace takes"
    code, lines, err = ran(gateway, "receive", "orders", *SOON)
    assert (code, lines) == (1, []) and "0 of 1 messages came within 2 s" in err


def test_a_message_from_stdin_that_need_not_last(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    code, _, err = ran(gateway, "send", "orders", "--body", "-", "--non-durable", *WAIT, stdin=b"a\nb")
    assert (code, err) == (0, "")
    code, [line], _ = ran(gateway, "receive", "orders", "--json", *WAIT)
    assert code == 0 and (json.loads(line)["body"], json.loads(line)["durable"]) == ("a\nb", False)
    code, lines, err = ran(gateway, "send", "orders", "--body", "-", *WAIT, stdin=b"\xff")
    assert (code, lines) == (2, []) and "no UTF-8" in err


def test_messages_that_are_returned_and_rejected(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    gateway.command("node", "create", "dead")
    gateway.command("node", "create", "orders", "--dead-letter", "dead")
    assert ran(gateway, "send", "orders", *WAIT)[0] == 0
    code, [line], _ = ran(gateway, "receive", "orders", "--release", *WAIT)
    assert code == 0 and line.startswith("1  released  ") and line.endswith("  message 1")
    code, [line], _ = ran(gateway, "receive", "orders", "--reject", *WAIT)
    assert code == 0 and line.startswith("1  rejected")
    code, [line], _ = ran(gateway, "receive", "dead", *WAIT)
    assert code == 0 and line.startswith("1  accepted  ")


def test_a_message_that_is_not_accepted(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    gateway.command("node", "create", "small", "--capacity-events", "1", "--honour-capacity", "true")
    code, lines, err = ran(gateway, "send", "small", "--count", "2", *WAIT)
    assert (code, err) == (1, "")
    assert lines[0].startswith("1  accepted  ")
    assert lines[1].startswith("2  rejected: amqp:resource-limit-exceeded: "), lines


@pytest.mark.parametrize("command", ["send", "receive"])
def test_a_link_that_is_refused(new_gateway: StartGateway, command: str) -> None:
    gateway = new_gateway("embedded", nodes={"create_on_attach": []})
    code, lines, err = ran(gateway, command, "nowhere", *WAIT)
    assert (code, lines) == (1, []) and ": amqp:not-found: " in err
    assert "Condition(" not in err and "symbol(" not in err


def test_a_login_with_the_password_of_the_environment_or_the_url(new_gateway: StartGateway, tmp_path: Path) -> None:
    write_users(tmp_path / "users.yaml", alice=[])
    security = {"sasl": ["PLAIN"], "users": str(tmp_path / "users.yaml"), "plain_without_tls": True}
    gateway = new_gateway("embedded", security=security)
    login = {"REALMGATE_USER": "alice", "REALMGATE_PASSWORD": PASSWORD}
    code, lines, err = ran(gateway, "send", "orders", *WAIT, environment=login)
    assert (code, err) == (0, "") and PASSWORD not in "".join(lines)
    code, lines, err = ran(gateway, "receive", "orders", *WAIT, url=f"amqp://alice:{PASSWORD}@{gateway.address}")
    assert (code, err) == (0, "") and PASSWORD not in "".join(lines)
    wrong = f"{PASSWORD}-and-more"
    code, lines, err = ran(gateway, "send", "orders", *WAIT, url=f"amqp://alice:{wrong}@{gateway.address}")
    assert (code, lines) == (2, []) and gateway.address in err and PASSWORD not in err
    assert "login refused (user alice, PLAIN)" in err and "listen there" not in err
    assert PASSWORD not in gateway.log()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_that_shows_no_password(new_gateway: StartGateway, tmp_path: Path, mechanism: str) -> None:
    write_users(tmp_path / "users.yaml", alice=[])
    security = {"sasl": [mechanism], "users": str(tmp_path / "users.yaml")}
    gateway = new_gateway("embedded", security=security)
    url = f"amqp://alice:{PASSWORD}@{gateway.address}"
    code, lines, err = ran(gateway, "send", "orders", *WAIT, url=url)
    assert (code, err) == (0, "") and lines[0].startswith("1  accepted")
    code, lines, err = ran(gateway, "receive", "orders", *WAIT, url=url)
    assert (code, err) == (0, "") and lines[0].endswith("message 1")
    code, lines, err = ran(gateway, "send", "orders", *WAIT, url=f"amqp://alice:wrong@{gateway.address}")
    assert (code, lines) == (2, []) and f"login refused (user alice, {mechanism})" in err
    code, lines, err = ran(gateway, "send", "orders", *WAIT)
    assert (code, lines) == (2, []) and f"a login is needed ({mechanism}); name a user: REALMGATE_USER" in err


Talk = Callable[[socket.socket], None]


def saying(octets: bytes) -> Talk:
    def talk(opened: socket.socket) -> None:
        with suppress(OSError):
            opened.sendall(octets)
            opened.shutdown(socket.SHUT_WR)
            while opened.recv(1000):
                pass

    return talk


def answered(capsys: pytest.CaptureFixture[str], talk: Talk, scheme: str = "amqp") -> tuple[int, str]:
    """Exit code and complaint of a client whose peer talks so behind the client's header."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:

        def peer() -> None:
            opened, _ = listener.accept()
            with opened:
                opened.settimeout(HANG_S)
                with suppress(OSError):
                    opened.recv(8)
                talk(opened)

        done = pool.submit(peer)
        url = f"{scheme}://alice:secret@127.0.0.1:{listener.getsockname()[1]}"
        code = run(["send", "orders", *WAIT, "--url", url])
        done.result(HANG_S)
    err = capsys.readouterr().err
    assert "secret" not in err and "Traceback" not in err
    return code, err


SASL = b"AMQP\x03\x01\x00\x00"


@pytest.mark.parametrize(
    ("octets", "words"),
    [
        (b"HTTP/1.1 400 Bad Request", "no login is possible there: it answers b'HTTP/1.1'"),
        (b"AMQP\x00\x01\x00\x00", "no login is possible there"),
        (b"", "closed the connection before the login ended"),
        (SASL + sasl_frame(0x40, Symbol("GSSAPI")), "it offers GSSAPI; this client knows SCRAM-SHA-512, SCRAM-SHA-256"),
        (SASL + sasl_frame(0x40, Symbol("PLAIN")) + sasl_frame(0x44, UByte(4)), "cannot check a login now (outcome 4)"),
        (SASL + sasl_frame(0x40, Symbol("SCRAM-SHA-256")) + sasl_frame(0x42, b"r=x"), "SCRAM-SHA-256 fails"),
        (SASL + sasl_frame(0x40, Symbol("SCRAM-SHA-256")) + sasl_frame(0x44, UByte(0)), "SCRAM-SHA-256 fails"),
        (SASL + b"\x7f\xff\xff\xff\x02\x01\x00\x00", "no login of AMQP"),
        (SASL + b"\x00\x00\x00\x0a\x02\x01\x00\x00\x00\x53", "no login of AMQP"),
    ],
)
def test_what_a_peer_without_a_login_says(capsys: pytest.CaptureFixture[str], octets: bytes, words: str) -> None:
    code, err = answered(capsys, saying(octets))
    assert code == 2 and words in err, err


def test_a_peer_that_does_not_know_the_password(capsys: pytest.CaptureFixture[str]) -> None:
    """It takes every login and cannot sign: it is not the peer that was meant, and gets no message."""
    behind: list[bytes] = []

    def impostor(opened: socket.socket) -> None:
        opened.sendall(SASL + sasl_frame(0x40, Symbol("SCRAM-SHA-256")))
        first = read_frame(opened).value[1].decode()
        nonce = first.partition(",r=")[2] + "more"
        opened.sendall(sasl_frame(0x42, f"r={nonce},s={b64encode(bytes(16)).decode()},i=4096".encode()))
        assert read_frame(opened).value[0].startswith(b"c=biws,r=" + nonce.encode())
        opened.sendall(sasl_frame(0x44, UByte(0), b"v=" + b64encode(bytes(32))))
        behind.append(opened.recv(1000))

    code, err = answered(capsys, impostor)
    assert code == 2 and "SCRAM-SHA-256 fails" in err and "another peer" in err, err
    assert behind == [b""]


def test_a_peer_without_tls(capsys: pytest.CaptureFixture[str]) -> None:
    code, err = answered(capsys, saying(SASL), "amqps")
    assert code == 2 and "no TLS there" in err


def test_a_configuration_says_where(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    written = gateway.config_path.read_text()
    rewrite(gateway.config_path, written.replace(str(gateway.port), "0"))
    with pytest.raises(RuntimeError, match="listen has port 0"):
        gateway.command("send", "orders")
    rewrite(gateway.config_path, written)
    assert gateway.command("send", "orders", *WAIT).startswith("1  accepted  ")
    assert gateway.command("receive", "orders", *WAIT).endswith("  message 1\n")


def test_tls(tmp_path: Path) -> None:
    authority, others = Authority(tmp_path / "authority"), Authority(tmp_path / "others")
    pair = authority.sign("server", "/CN=gateway", "DNS:localhost")
    tls = {"certificate": str(pair.certificate), "key": str(pair.key)}
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), tls=tls)
    gateway.more = ["amqps"]
    gateway.start()
    url = f"amqps://localhost:{gateway.ports['amqps']}"
    try:
        code, lines, err = ran(gateway, "send", "orders", "--ca", str(authority.certificate), *WAIT, url=url)
        assert (code, err) == (0, "") and len(lines) == 1
        for words in ([], ["--ca", str(others.certificate)]):
            code, lines, err = ran(gateway, "send", "orders", *words, *WAIT, url=url)
            assert (code, lines) == (2, []) and "certificate verify failed" in err
        code, lines, err = ran(gateway, "send", "orders", "--ca", str(tmp_path / "absent.pem"), *WAIT, url=url)
        assert (code, lines) == (2, []) and "absent.pem" in err
    finally:
        assert gateway.stop() == 0


def test_no_answer_ends_the_command(
    new_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = new_gateway("embedded")
    monkeypatch.setattr(command, "send", lambda *_: Outcome(NO_ANSWER))
    assert run(["send", "orders", "--count", "3", "--url", f"amqp://{gateway.address}"]) == 1
    output = capsys.readouterr()
    assert output.out.startswith("1  no answer  message-id ") and output.out.count("\n") == 1
    assert "1 of 3 messages were sent: the last one may or may not be stored" in output.err


def test_no_peer_listens_there(tmp_path: Path) -> None:
    absent = GatewayProcess(tmp_path / "x.yaml", tmp_path / "x.log", port=1)
    code, lines, err = ran(absent, "send", "orders", *SOON, url="amqp://alice:hidden-word@127.0.0.1:1")
    assert (code, lines) == (2, []) and "amqp://127.0.0.1:1" in err and "hidden-word" not in err


@pytest.mark.parametrize("url", ["http://127.0.0.1:5672", "127.0.0.1", "amqp://", "amqp://h:99999999", "ws://h:80"])
def test_what_is_no_address(tmp_path: Path, url: str) -> None:
    absent = GatewayProcess(tmp_path / "x.yaml", tmp_path / "x.log")
    code, lines, err = ran(absent, "send", "orders", url=url)
    assert (code, lines) == (2, []) and "write amqp://HOST:PORT" in err


def test_wrong_words(tmp_path: Path) -> None:
    absent = GatewayProcess(tmp_path / "x.yaml", tmp_path / "x.log")
    for words in (("--count", "0"), ("--timeout", "soon"), ("--property", "colour")):
        code, lines, err = ran(absent, "send", "orders", *words, url="amqp://127.0.0.1:1")
        assert (code, lines) == (2, []) and words[1] in err
