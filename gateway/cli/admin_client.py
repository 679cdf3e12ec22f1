"""Asking serving gateways at their admin addresses. Each answer is a list over gateways (`gateway.admin.answers`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from gateway.config.settings import Settings

TIMEOUT_S: Final = 10.0
_ROWS: Final = 500  # of one answer
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
Document = dict[str, Any]
Query = Mapping[str, str | None]


class AdminProblem(Exception):
    """A gateway that cannot be asked, or that refuses; says what to do."""


def addresses(urls: Sequence[str] | None, settings: Settings | None) -> list[str]:
    """Where to ask: as they were named, or as the configuration says. Raises AdminProblem."""
    if urls:
        for url in urls:
            if urlsplit(url).scheme != "http" or not urlsplit(url).hostname:
                raise AdminProblem(f"{url} is no admin address: write http://HOST:PORT")
        return [url.rstrip("/") for url in urls]
    if settings is None or settings.admin is None:
        raise AdminProblem('the configuration has no admin address: write admin: {listen: "http://127.0.0.1:9464"}')
    listen = settings.admin
    if listen.port == 0:
        raise AdminProblem("admin.listen has port 0, a free one: name it with --gateway http://HOST:PORT")
    host = _ANYWHERE.get(listen.host, listen.host)
    return [f"http://[{host}]:{listen.port}" if ":" in host else f"http://{host}:{listen.port}"]


def ask(url: str, path: str, query: Query, method: str = "GET", who: str = "") -> list[Document]:
    """The gateways of one answer. `query`: parameters; None: it is not given. Raises AdminProblem."""
    parts = urlsplit(url)
    written = urlencode({name: value for name, value in query.items() if value is not None})
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=TIMEOUT_S)
    try:
        connection.request(method, f"{path}?{written}", headers={"Realmgate-Who": who} if who else {})
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, HTTPException) as error:
        raise AdminProblem(
            f"{url} does not answer: {error or type(error).__name__}; is that gateway running?"
        ) from None
    finally:
        connection.close()
    try:
        gateways: list[Document] = json.loads(body)["gateways"]
    except (ValueError, KeyError, TypeError):
        raise AdminProblem(f"{url}{path} is no answer of a gateway: {body[:200]!r}") from None
    if answer.status >= 400:
        raise AdminProblem(f"{url}: {gateways[0].get('problem') or answer.status}")
    return gateways


def rows(url: str, path: str, what: str, query: Query) -> Iterator[tuple[Document, list[Document]]]:
    """Each page's gateway and its rows, until there are no more. Raises AdminProblem."""
    after: str | None = None
    while True:
        [gateway] = ask(url, path, {**query, "limit": str(_ROWS), "after": after})
        yield gateway, gateway[what]
        after = gateway["next"]
        if after is None:
            return
