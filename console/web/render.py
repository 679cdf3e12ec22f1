"""A document as HTML: templates of `console/templates`, with everything escaped, and the words of `console.pages`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from console.pages import words
from console.pages.all import PAGES
from console.pages.csv_tables import tables
from console.web import charts
from gateway.verdict.kinds import Kind

HERE = Path(__file__).parent.parent
STATIC = HERE / "static"
PART = "<!--part-->"
"""Between parts of a page that change at different times. No text of a peer can have it: `<` is escaped."""


def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": words.number,
        "octets": words.octets,
        "duration": words.duration,
        "clock": words.clock,
        "minute": words.minute,
        "some": words.some,
        "address": address,
    }
    made.globals |= {
        "bars": charts.bars,
        "meter": charts.meter,
        "mix": charts.mix,
        "part": Markup(PART),  # noqa: S704 -- a constant
        "error_address": error_address,
        "pages": [(path, page) for path, page in PAGES.items() if page.key],
    }
    return made


def address(path: str, query: Mapping[str, str], **changed: Any) -> str:
    """The same page with other parameters; None or empty: without it."""
    wanted = {name: str(value) for name, value in {**query, **changed}.items() if value not in (None, "")}
    return f"{path}?{urlencode(wanted)}" if wanted else path


def error_address(row: Mapping[str, Any]) -> str:
    kind = Kind(row["class"], row["condition"], row["code"], row["rule"])
    if kind.is_fault:
        kind = kind._replace(condition="")
    return address("/errors/one", kind.address)


class Pages:
    """`main(document, path, query)` is the content of a page, `whole(document, main, ...)` the page around it."""

    def __init__(self) -> None:
        self._environment = environment()

    def content(self, template: str, document: Mapping[str, Any], path: str) -> str:
        """Of a page that has neither a stream nor parameters."""
        return self._environment.get_template("main.html").render(
            d=document, now=document["at_us"], path=path, query={}, content=template, json="", csv=()
        )

    def main(self, document: Mapping[str, Any], path: str, query: Mapping[str, str]) -> str:
        name = "/overview" if path == "/" else path
        json = address(f"{name}.json", query)
        csv = [(table, address(f"{name}.csv", query, table=table)) for table, rows in tables(document).items() if rows]
        return self._environment.get_template("main.html").render(
            d=document,
            now=document["at_us"],
            path=path,
            query=query,
            content=f"{PAGES[path].template}.html",
            json=json,
            csv=csv,
        )

    def whole(self, document: Mapping[str, Any], main: str, path: str, query: Mapping[str, str], **more: Any) -> str:
        content = Markup(main)  # noqa: S704 -- made by `main`, escaped there
        return self._environment.get_template("base.html").render(
            d=document, now=document["at_us"], path=path, query=query, main=content, **more
        )

    def alone(self, template: str, document: Mapping[str, Any]) -> str:
        """A page without the frame."""
        return self._environment.get_template(template).render(d=document)
