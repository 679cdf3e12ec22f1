"""`realmgate send` and `receive`.

Exit codes: 0 every message got the outcome; 1 one was not accepted (received messages: did not get the outcome that was
asked for), fewer came than were asked for, or the peer refused the link; 2 there is no connection.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import uuid
from typing import Any, Final, TextIO

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.connection import NO_ANSWER, Received, connected, made, receive, receiver, send, sender
from gateway.cli.client.peer_address import PeerAddress, from_settings, from_url
from gateway.cli.output import print_error, printable
from gateway.config.settings import load_settings

_COULD_NOT_RUN: Final = 2
_WANTED: Final = {"accept": "accepted", "release": "released", "reject": "rejected"}
_FIELDS: Final = ("id", "subject", "reply_to", "correlation_id", "content_type", "group_id", "durable", "priority")


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """One command; its exit code. Raises SettingsProblems."""
    try:
        if arguments.command == "send":
            return _send(arguments, _address(arguments), out)
        return _receive(arguments, _address(arguments), out)
    except ClientProblem as error:
        print_error(str(error))
        return 1 if error.refused else _COULD_NOT_RUN


def _address(arguments: argparse.Namespace) -> PeerAddress:
    if arguments.url is not None:
        return from_url(arguments.url, os.environ, arguments.ca)
    return from_settings(load_settings(arguments.config), os.environ, arguments.ca)


def _send(arguments: argparse.Namespace, address: PeerAddress, out: TextIO) -> int:
    properties, body = _properties(arguments.property), _body(arguments.body)
    accepted = 0
    with connected(address, arguments.timeout) as peer:
        link = sender(peer, arguments.node)
        for number in range(1, arguments.count + 1):
            message_id = str(uuid.uuid4())
            text = f"message {number}" if body is None else body
            message = made(text, message_id, arguments.subject, properties, arguments.durable)
            outcome = send(link, message, arguments.timeout)
            accepted += outcome.name == "accepted"
            out.write(f"{number}  {outcome}  message-id {message_id}\n")
            out.flush()
            if outcome.name == NO_ANSWER:
                print_error(f"{number} of {arguments.count} messages were sent: the last one may or may not be stored")
                break
    return 0 if accepted == arguments.count else 1


def _properties(pairs: list[str]) -> dict[str, str]:
    """Raises ClientProblem."""
    properties = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ClientProblem(f"--property {pair} is no KEY=VALUE")
        properties[key] = value
    return properties


def _body(written: str | None) -> str | None:
    """Raises ClientProblem."""
    if written != "-":
        return written
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise ClientProblem("--body -: stdin holds no UTF-8 text") from None


def _receive(arguments: argparse.Namespace, address: PeerAddress, out: TextIO) -> int:
    count = done = 0
    with connected(address, arguments.timeout) as peer:
        link = receiver(peer, arguments.node)
        for count, got in enumerate(receive(link, arguments.count, arguments.outcome, arguments.timeout), 1):
            done += got.outcome.name in (_WANTED[arguments.outcome], "settled")
            out.write(_json(got) if arguments.json else _line(count, got))
            out.flush()
    if count < arguments.count:
        print_error(f"{count} of {arguments.count} messages came within {arguments.timeout:g} s")
    return 0 if done == arguments.count else 1


def _line(number: int, got: Received) -> str:
    subject = f"  {printable(got.message.subject)}" if got.message.subject else ""
    return f"{number}  {got.outcome}  {got.tag or '-'}{subject}  {printable(str(_plain(got.message.body)))}\n"


def _json(got: Received) -> str:
    """One line; what JSON does not have is a text, octets are base64."""
    message, outcome = got.message, got.outcome
    document: dict[str, Any] = {
        "tag": got.tag,
        "outcome": outcome.name,
        "condition": outcome.condition,
        "text": outcome.text,
    }
    document |= {name: getattr(message, name) for name in _FIELDS}
    if message.content_type == "None":  # proton's word for none
        document["content_type"] = None
    document |= {"ttl_ms": round(1000 * (message.ttl or 0)), "delivery_count": message.delivery_count}
    document |= {"annotations": message.annotations, "properties": message.properties, "body": message.body}
    return json.dumps(_plain(document)) + "\n"


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return _octets(bytes(value))
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _octets(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return base64.b64encode(octets).decode()
