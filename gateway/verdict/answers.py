"""The JSON of `/health` and `/api/...`, read into rows of known fields. What a gateway answers may be anything: a field
of another type is None, a text is cut, and what is no answer at all raises `WrongAnswer`.

Source: gateway/admin/answers.py, peers.py, errors.py, health.py. Microseconds since 1970, seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from gateway.verdict.limits import ROWS, TEXT
from gateway.verdict.samples import WrongAnswer

Row = dict[str, Any]
_TEXTS, _NUMBERS, _COUNTS, _LISTS = "texts", "numbers", "counts", "lists"
ERROR: Final[Mapping[str, tuple[str, ...]]] = {
    _TEXTS: (
        "id", "what", "user", "container", "address", "node", "link", "direction", "durable", "condition", "class",
        "rule", "outcome", "answer", "native", "fault", "text", "remedy", "delivery",
    ),
    _NUMBERS: ("first_us", "at_us", "count", "more"),
    _LISTS: ("more_nodes",),
}  # fmt: skip
_LISTED: Final = 50
LINK: Final[Mapping[str, tuple[str, ...]]] = {
    _TEXTS: (
        "id", "user", "container", "address", "name", "direction", "kind", "node", "durable", "sender_settle_mode",
        "receiver_settle_mode",
    ),
    _NUMBERS: ("credit", "unsettled", "oldest_unsettled_s", "waiting", "without_credit_s", "without_credit_total_s",
              "last_outcome_s", "not_given"),
    _COUNTS: ("outcomes",),
}  # fmt: skip
CONNECTION: Final[Mapping[str, tuple[str, ...]]] = {
    _TEXTS: ("id", "state", "user", "container", "address"),
    _NUMBERS: ("since_us", "links", "messages_received", "unsettled"),
}
FIELDS: Final = {"errors": ERROR, "links": LINK, "connections": CONNECTION}


def read_health(body: bytes) -> Row:
    """Of a gateway that serves, or that waits for its realm. Raises WrongAnswer."""
    health = _mapping(body, "/health")
    if not isinstance(health.get("state"), str) or not isinstance(health.get("run"), str):
        raise WrongAnswer("/health has no state and no run: is this a gateway's admin address?")
    tables, realm = _inner(health, "tables"), _inner(health, "realm")
    problems = [entry for entry in list_of(health.get("problems"))[:50] if isinstance(entry, dict)]
    return {
        "state": text(health["state"]),
        "run": text(health["run"]),
        "detail": text(health.get("detail")) or "",
        "realm": text(realm.get("kind")) or "",
        "lease_held": realm.get("lease_held") is True,
        "digest": text(tables.get("digest")) or "",
        "profile": text(tables.get("profile")) or "",
        "problems": [_problem(problem) for problem in problems],
        "warnings": [text(warning) or "" for warning in list_of(health.get("warnings"))[:50]],
        "connections": number(health.get("connections")),
        "links": number(health.get("links")),
        "evidence": {name: number(_inner(health, "evidence").get(name)) for name in ("failed", "pending")},
        "reload": _reload(_inner(health, "reload")),
    }


def _problem(entry: Mapping[str, Any]) -> Row:
    texts = {name: text(entry.get(name)) or "" for name in ("kind", "about", "detail", "remedy")}
    return {**texts, "since_us": number(entry.get("since_us")) or 0}


def _reload(entry: Mapping[str, Any]) -> Row:
    problems = [text(problem) or "" for problem in list_of(entry.get("problems"))[:20]]
    return {"last_done_us": number(entry.get("last_done_us")), "problems": problems}


def read_page(body: bytes, what: str) -> tuple[Row, list[Row]]:
    """The gateway of an answer of `/api/WHAT`, and its rows. Raises WrongAnswer."""
    head, rows = read_list(body, what)
    return head, [_row(row, FIELDS[what]) for row in rows]


def read_list(body: bytes, what: str, most: int = ROWS) -> tuple[Row, list[Row]]:
    """The gateway (run, at_us, state, next, left_out, known_us), and its rows as they came. Raises WrongAnswer."""
    answer = _mapping(body, f"/api/{what}")
    gateways = list_of(answer.get("gateways"))
    if len(gateways) != 1 or not isinstance(gateways[0], dict):
        raise WrongAnswer(f"/api/{what} does not answer for one gateway")
    gateway = gateways[0]
    rows = gateway.get(what)
    if not isinstance(rows, list) or len(rows) > most:
        raise WrongAnswer(f"/api/{what} has no list of at most {most} rows: {text(gateway.get('problem')) or ''}")
    head: Row = {name: text(gateway.get(name)) for name in ("run", "state", "next")}
    head |= {"at_us": number(gateway.get("at_us")) or 0, "left_out": number(gateway.get("left_out")) or 0}
    head["known_us"] = number(gateway.get("known_us"))
    return head, [row for row in rows if isinstance(row, dict)]


def _row(entry: Mapping[str, Any], fields: Mapping[str, tuple[str, ...]]) -> Row:
    row: Row = {name: text(entry.get(name)) for name in fields[_TEXTS]}
    row |= {name: number(entry.get(name)) for name in fields[_NUMBERS]}
    for name in fields.get(_COUNTS, ()):
        counts = _inner(entry, name)
        row[name] = {str(text(key)): count for key, value in [*counts.items()][:20] if (count := number(value))}
    for name in fields.get(_LISTS, ()):
        row[name] = [shown for value in list_of(entry.get(name))[:_LISTED] if (shown := text(value))]
    if "client" in entry:
        client = _inner(entry, "client")
        row["client"] = " ".join(filter(None, (text(client.get(name)) for name in ("product", "version"))))
    return row


def text(value: object) -> str | None:
    """As it may be shown: cut, and without characters that steer a terminal or turn the reading direction."""
    if not isinstance(value, str):
        return None
    return escaped(value[:TEXT])[:TEXT]


def escaped(value: str) -> str:
    """Without characters that steer a terminal or turn the reading direction."""
    if value.isprintable():
        return value
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in value)


def number(value: object) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e18 else None


def _mapping(body: bytes, what: str) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WrongAnswer(f"{what} is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise WrongAnswer(f"{what} is no JSON object")
    return document


def _inner(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = entry.get(name)
    return inner if isinstance(inner, dict) else {}


def list_of(value: object) -> list[Any]:
    """Empty where it is none."""
    return value if isinstance(value, list) else []
