"""Asking serving gateways at their admin addresses. Each answer is a list over gateways (`gateway.admin.answers`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from gateway.config.settings import Settings

TIMEOUT_S: Final = 10.0
_AT_ONCE: Final = 16  # gateways
ROWS: Final = 500  # of one answer
Document = dict[str, Any]
Query = Mapping[str, str | None]
T = TypeVar("T")


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
    if settings.admin.port == 0:
        raise AdminProblem("admin.listen has port 0, a free one: name it with --gateway http://HOST:PORT")
    return [settings.admin.local_url]


def fetch(url: str, path: str, query: Query, method: str = "GET", who: str = "") -> tuple[int, bytes]:
    """Status and body. `query`: parameters; None: it is not given. Raises AdminProblem."""
    parts = urlsplit(url)
    written = urlencode({name: value for name, value in query.items() if value is not None})
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=TIMEOUT_S)
    try:
        connection.request(method, f"{path}?{written}", headers={"Realmgate-Who": who} if who else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, HTTPException) as error:
        look = f"see whether that gateway runs, and whether its admin.listen is {url}"
        raise AdminProblem(f"{url} does not answer: {_words(error)}; {look}") from None
    finally:
        connection.close()


def ask(url: str, path: str, query: Query, method: str = "GET", who: str = "") -> list[Document]:
    """The gateways of one answer. Raises AdminProblem."""
    status, body = fetch(url, path, query, method, who)
    try:
        gateways: list[Document] = json.loads(body)["gateways"]
    except (ValueError, KeyError, TypeError):
        raise AdminProblem(f"{url}{path} is no answer of a gateway: {body[:200]!r}") from None
    if status >= 400:
        raise AdminProblem(f"{url}: {gateways[0].get('problem') or status}")
    return gateways


def _words(error: Exception) -> str:
    """The system's own, without its number."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def of_each(urls: Sequence[str], read: Callable[[str], T]) -> tuple[dict[str, T], dict[str, str]]:
    """What each gateway answers, by URL; and of those that do not, why and what to do. All are asked at once."""
    answers: dict[str, T] = {}
    problems: dict[str, str] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        requests = {url: pool.submit(read, url) for url in urls}
        for url, answer in requests.items():
            try:
                answers[url] = answer.result()
            except AdminProblem as error:
                problems[url] = str(error)
    return answers, problems


def tell(problems: Mapping[str, str], answered: int) -> int:
    """Names the gateways that did not answer. The exit code: 0 all did, 1 some, 2 none."""
    sys.stderr.write("".join(f"realmgate: {problem}\n" for problem in problems.values()))
    if not problems:
        return 0
    return 1 if answered else 2


def unreached(problems: Mapping[str, str], **empty: Any) -> list[Document]:
    """The same for programs: gateways of an answer, without what they would have told."""
    return [
        {"run": None, "url": url, "state": None, "at_us": None, "problem": problem, **empty}
        for url, problem in problems.items()
    ]


def rows(url: str, path: str, what: str, query: Query) -> Iterator[tuple[Document, list[Document]]]:
    """Each page's gateway and its rows, until there are no more. Raises AdminProblem."""
    after: str | None = None
    while True:
        [gateway] = ask(url, path, {**query, "limit": str(ROWS), "after": after})
        yield gateway, gateway[what]
        after = gateway["next"]
        if after is None:
            return
