"""What an operator does to a gateway through its admin address: close a connection.

A command changes something, so it is no page. It is a POST; `admin.commands` says who may ask for one, by the address
of the asking socket. A browser names the page in `Origin`: such a request is refused, whatever the page. The caller
gives his name in `Realmgate-Who`; it is logged with that address. There is no login. ADR 0089.
"""

from __future__ import annotations

import logging
import uuid
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from gateway.admin.answers import Answering, WrongParameter, place
from gateway.admin.http import Request, Response
from gateway.admin.peers import connection_row
from gateway.evidence.log_events import about
from gateway.evidence.notices import peer_of
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from native_backend.nodes.commands import Note, Reply, encode_note, encode_reply

WHO: Final = "realmgate-who"  # the header
_CHARACTERS: Final = 200  # of a reason, and of who gives it
_log = logging.getLogger("realmgate.commands")


def may_not(request: Request, commands: str) -> str:
    """Why this request is no command, in words; empty: it is one. `commands`: as in the configuration."""
    if "origin" in request.headers:
        return "commands are not taken from web pages"
    if not request.headers.get(WHO, "").strip():
        return f"a command says who gives it: write a header {WHO}: NAME"
    if commands == "none":
        return "this gateway takes no commands: write admin: {commands: loopback} in its configuration"
    if commands == "loopback" and not _is_loopback(request.address):
        return "this gateway takes commands from its own machine only (admin.commands: loopback)"
    return ""


def _is_loopback(address: str) -> bool:
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return known.is_loopback or bool(known.version == 6 and known.ipv4_mapped and known.ipv4_mapped.is_loopback)


async def close_connection(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?id=ID&reason=TEXT`: the peer gets a CLOSE with `amqp:connection:forced` and the reason. What its consumers had
    not settled comes back uncounted. Raises WrongParameter."""
    refused = may_not(request, gateway.settings.admin_commands)
    if refused:
        return answering.refusal(HTTPStatus.FORBIDDEN, refused)
    reason = request.query.get("reason", "").strip()[:_CHARACTERS]
    if not reason:
        raise WrongParameter("a reason is missing: write reason=TEXT")
    id_ = request.query.get("id", "")
    connection = _connection(gateway, place(id_, answering.run))
    if connection is None or connection.closing:
        return answering.refusal(HTTPStatus.NOT_FOUND, f"there is no connection {id_}")
    row = {**connection_row(connection), "id": id_}
    who = request.headers[WHO][:_CHARACTERS]
    words = f"{who!a} from {request.address} closes connection {id_} ({peer_of(connection)}): {reason!a}"
    event = about("connection closed by command", connection=id_, who=who, reason=reason)
    _log.warning("connection closed by command: %s", words, extra=event)
    _note(gateway, who, reason, f"{id_}: {peer_of(connection)}")
    connection.close("amqp:connection:forced", f"closed by an operator: {reason}", cause="stopped")
    return answering.answer(closed=row)


def _connection(gateway: Gateway, numbers: tuple[int, ...]) -> Connection | None:
    return next((connection for connection in gateway.connections if (connection.record.number,) == numbers), None)


def _note(gateway: Gateway, who: str, why: str, change: str) -> None:
    """For `realmgate audit`: the record of what was done, and its answer."""
    id_, now_us = uuid.uuid4().hex, gateway.clock.epoch_us()
    note = Note(id_, "close-connection", "", change, who, why)
    gateway.realm.append_evidence("commands", id_.encode(), encode_note(note, now_us))
    reply = encode_reply(Reply(id_, "done", 0, ""), gateway.realm.run, now_us)
    gateway.realm.append_evidence("answers", id_.encode(), reply)
