"""Which link holds a message now: asked of serving gateways, because no record says it before the settlement.

`Holder` is known only where a gateway says that one of its links has this very event unsettled. Blocks; raises nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.cli.gateways.admin_client import AdminProblem, addresses, of_each, rows
from gateway.cli.trace.events import Place
from gateway.cli.trace.records import iso
from gateway.config.settings import Settings
from native_backend.nodes.durable import QUEUE


class Holders:
    """Asked at the addresses that were named, or where the configuration says."""

    def __init__(self, urls: Sequence[str] | None, settings: Settings) -> None:
        self._urls: list[str] = []
        self._why_not = ""
        try:
            self._urls = addresses(urls, settings)
        except AdminProblem as error:
            self._why_not = str(error)

    def of(self, place: Place, node: str, durable: str) -> dict[str, Any]:
        """`held_by`: link, container, user, address, since, gateway, run and seq; null: no link of those that were
        asked has it. `holder_unknown`: why one is not known, where that cannot be said."""
        if not self._urls:
            return {"held_by": None, "holder_unknown": self._why_not}
        query = {"node": node, "tag": f"{place[0]}:{place[1]}"}
        answers, problems = of_each(self._urls, lambda url: [*rows(url, "/api/links", "links", query)])
        unknown = [*problems.values()]
        for url, pages in answers.items():
            for gateway, page in pages:
                for link in page:
                    if "held" not in link:
                        unknown.append(f"the gateway at {url} is of an earlier release")
                    elif (link["durable"] or QUEUE) == durable:
                        return {"held_by": _holder(url, gateway, link)}
        return {"held_by": None} | ({"holder_unknown": "; ".join(dict.fromkeys(unknown))} if unknown else {})


def _holder(url: str, gateway: dict[str, Any], link: dict[str, Any]) -> dict[str, Any]:
    held = link["held"]
    fields = {"link": link["name"], **{key: link[key] for key in ("container", "user", "address", "id")}}
    since = iso(gateway["at_us"] - round(held["age_s"] * 1e6))
    return {**fields, "since": since, "gateway": url, "run": gateway["run"], "seq": held["seq"]}
