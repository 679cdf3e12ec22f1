"""The console's routes: each page as HTML and as JSON of the same document, `/stream`, `/login`, `/healthz`.

A page is made from what the pollers have heard; making it never asks a gateway by itself beyond `Watch.look`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from console.facts.gateway import Gateway
from console.facts.history import NOTHING_READ
from console.facts.letters import NOT_READ
from console.limits import RENDERED, REPORT_BYTES, STREAMS
from console.pages.all import PAGES
from console.pages.csv_tables import as_csv, first_of, tables
from console.pages.view import Document, View, frame
from console.poll.commands import Commands
from console.poll.history_reader import HISTORY, HistoryReader
from console.poll.poller import Watch
from console.poll.priority import Foreground
from console.poll.realm_reader import READS_REALM, RealmReader
from console.settings import Settings, SettingsError
from console.web.actions import Actions
from console.web.login import Login
from console.web.render import STATIC, Pages
from console.web.security import LOCAL, REPORT_POLICY, Guard
from console.web.sessions import Sessions
from console.web.stream import events
from console.web.tables import TablesOnDisk
from gateway.verdict.reports import PAGE, Reports
from native_backend.clock import Clock

Answer = Callable[[Request], Awaitable[Response]]


class Console:
    """See the module's docstring. `app` is what a server runs. Raises SettingsError: the file of users is wrong."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._watch = Watch([Gateway(url) for url in settings.gateways], clock)
        self._tables = TablesOnDisk(settings.mappings)
        self._pages = Pages()
        self._reports = Reports(settings.reports)
        of_pages, of_history = (Commands(settings.config) if settings.config is not None else None for _ in range(2))
        self._realm = RealmReader(of_pages, clock)
        self._history = HistoryReader(self._watch.gateways, clock, of_history)
        self._rendered: OrderedDict[tuple[Any, ...], tuple[Document, str]] = OrderedDict()
        sessions = None if settings.users is None else Sessions(settings.users, settings.groups, clock)
        if sessions is not None and sessions.problem:
            raise SettingsError(sessions.problem)
        self._login = Login(sessions, self._pages, settings.secure, clock)
        routes = [
            Route("/healthz", _healthz),
            Route("/stream", self._stream),
            Route("/login", self._login.page, methods=["GET", "POST"]),
            Route("/logout", self._login.out, methods=["POST"]),
            Route("/reconciliation/report/{name}", self._report),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        if settings.actions and settings.config is not None:
            commands = Commands(settings.config, Foreground() if settings.gives_way else None)
            actions = Actions(commands, self._login, settings.gateways, self._acting)
            routes.append(Route("/act", actions.page, methods=["GET", "POST"]))
        for path in PAGES:
            routes.append(Route(path, self._html(path)))
            name = "/overview" if path == "/" else path
            routes.append(Route(f"{name}.json", self._json(path)))
            routes.append(Route(f"{name}.csv", self._csv(path)))
        hosts = LOCAL if settings.is_local and sessions is None else ()
        self.app = Starlette(routes=routes, lifespan=self._running, middleware=[Middleware(Guard, hosts=hosts)])

    @asynccontextmanager
    async def _running(self, _: Starlette) -> AsyncIterator[None]:
        self._watch.start()
        self._tables.want([])
        yield
        await self._history.stop()
        await self._watch.stop()

    def _html(self, path: str) -> Answer:
        async def show(request: Request) -> Response:
            if (refused := self._login.refusal(request)) is not None:
                return refused
            query = _query(request)
            document, main = await self._document(path, query, request)
            if "json" in request.headers.get("accept", "").split(",")[0]:
                return _as_json(document)
            live = self._watch.streams < STREAMS
            more = {"live": live, "login": self._login.is_needed, "stream": _stream_address(path, query)}
            return HTMLResponse(self._pages.whole(document, main, path, query, **more))

        return show

    def _json(self, path: str) -> Answer:
        async def show(request: Request) -> Response:
            if not self._login.is_in(request):
                return PlainTextResponse("log in first: /login\n", 401)
            document, _ = await self._document(path, _query(request), request)
            return _as_json(document)

        return show

    def _csv(self, path: str) -> Answer:
        """`?table=NAME`; without it the page's first one."""

        async def show(request: Request) -> Response:
            if not self._login.is_in(request):
                return PlainTextResponse("log in first: /login\n", 401)
            query = _query(request)
            wanted = query.pop("table", "") if path != "/rules" else query.get("table", "")
            document, _ = await self._document(path, query, request)
            by_name = tables(document)
            name = wanted or first_of(by_name)
            if name not in by_name:
                return PlainTextResponse(f"there is no table {name!a}; there are: {', '.join(by_name)}\n", 404)
            saved = f'attachment; filename="{document["page"]}-{quote(name, safe="")}.csv"'
            return Response(as_csv(by_name[name]), media_type="text/csv", headers={"Content-Disposition": saved})

        return show

    async def _document(self, path: str, query: Mapping[str, str], request: Request) -> tuple[Document, str]:
        """And its content as HTML."""
        await self._watch.look(PAGES[path].links)
        self._tables.want(self._watch.gateways)
        if path in READS_REALM:
            await self._realm.read(path, query, self._login.user(request))
        if path == HISTORY:
            await self._history.read(query)
        if path in ("/rules", "/errors/one"):
            await self._tables.wait()
        return self._again(path, query, self._login.user(request))

    def _view(self, path: str, query: Mapping[str, str], user: str) -> View:
        return View(
            gateways=self._watch.gateways,
            reports=self._reports.read(),
            tables=self._tables.current,
            now_us=self._clock.epoch_us(),
            query=query,
            realm=self._settings.realm,
            has_reports=bool(self._settings.reports),
            user=user,
            stored=self._realm.known(path, query, user) if path in READS_REALM else NOT_READ,
            history=self._history.known(query) if path == HISTORY else NOTHING_READ,
            acts=self._settings.actions,
        )

    def _acting(self, document: Mapping[str, Any], user: str) -> str:
        """The page of an action, within the frame of every page."""
        view = self._view("/", {}, user)
        whole = frame(view, "act", document["action_title"], "What will happen, by whose right, and why?", **document)
        main = self._pages.content("act.html", whole, "/act")
        return self._pages.whole(whole, main, "/act", {}, live=False, login=self._login.is_needed, stream="")

    async def _stream(self, request: Request) -> Response:
        if not self._login.is_in(request):
            return PlainTextResponse("log in first: /login\n", 401)
        page = urlsplit(request.query_params.get("page", "/"))
        if page.path not in PAGES:
            return PlainTextResponse("there is no such page\n", 404)
        if self._watch.streams >= STREAMS:
            return PlainTextResponse(f"{STREAMS} pages are live already: reload this one\n", 503)
        query, user = dict(parse_qsl(page.query)), self._login.user(request)

        def make() -> tuple[Document, str]:
            if page.path == HISTORY:
                self._history.want(query)  # it comes with a later event
            return self._again(page.path, query, user)

        links = PAGES[page.path].links
        stream = events(self._watch, links, make, lambda: self._login.is_in(request), request)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    def _again(self, path: str, query: Mapping[str, str], user: str) -> tuple[Document, str]:
        """Made once for all viewers of the same page, round and second."""
        second = self._clock.epoch_us() // 1_000_000  # ages rise while no round ends
        key = (path, tuple(sorted(query.items())), user, self._watch.version, self._tables.current is None, second)
        if key not in self._rendered:
            document = PAGES[path].make(self._view(path, query, user))
            self._rendered[key] = document, self._pages.main(document, path, query)
            while len(self._rendered) > RENDERED:
                self._rendered.popitem(last=False)
        return self._rendered[key]

    async def _report(self, request: Request) -> Response:
        """The page of a reconciliation, as it was written, with neither script nor origin."""
        if (refused := self._login.refusal(request)) is not None:
            return refused
        name = request.path_params["name"]
        report = next((entry for entry in self._reports.read() if entry.name == name), None)
        path = report.directory / PAGE if report is not None else None
        try:
            if path is None or path.stat().st_size > REPORT_BYTES:
                return PlainTextResponse(
                    f"there is no such report, or it is larger than {REPORT_BYTES:,} octets\n", 404
                )
            return HTMLResponse(path.read_bytes(), headers={"Content-Security-Policy": REPORT_POLICY})
        except OSError:
            return PlainTextResponse("the report cannot be read\n", 404)


def _query(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.query_params.items() if value}


def _stream_address(path: str, query: Mapping[str, str]) -> str:
    page = f"{path}?{urlencode(query)}" if query else path
    return f"/stream?{urlencode({'page': page})}"


def _as_json(document: Document) -> Response:
    body = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return Response(body, media_type="application/json")


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n")
