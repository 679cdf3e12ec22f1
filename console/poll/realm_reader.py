"""Dead letters and commands of the realm, read by commands while a page asks for them, and kept for a moment.

Every user has answers of its own: the grants decide who may look (`--as`). Nothing here raises for what a command
answers: it is written into `Stored.problem`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from console.facts.letters import Asked, Stored, asked_of, read_audit, read_dead_nodes, read_letters
from console.limits import LETTERS_SHOWN, STORED_KEPT, STORED_S
from console.poll.commands import Commands
from console.poll.fetch import NoAnswer
from gateway.verdict.answers import Row
from gateway.verdict.samples import WrongAnswer
from native_backend.clock import Clock

ANONYMOUS: Final = "anonymous"
"""Who looks where there is no login."""
DEAD: Final = "/dead"
READS_REALM: Final = (DEAD, "/gateways")
"""Pages that need what lies in the realm: the others get the commands of the last week."""
_SINCE: Final = "--since=7d"


def _asked(path: str, query: Mapping[str, str]) -> Asked:
    return asked_of(query) if path == DEAD else Asked()


class RealmReader:
    """`commands` None: the console knows no configuration, and can read nothing."""

    def __init__(self, commands: Commands | None, clock: Clock) -> None:
        self._commands, self._clock = commands, clock
        self._nodes: list[Row] = []
        self._nodes_s = float("-inf")
        self._stored: OrderedDict[tuple[str, str, Asked], tuple[float, Stored]] = OrderedDict()

    def known(self, path: str, query: Mapping[str, str], user: str) -> Stored:
        """What was read last for that page and user."""
        kept = self._stored.get((path, user, _asked(path, query)))
        return kept[1] if kept is not None else Stored(can_read=self._commands is not None)

    async def read(self, path: str, query: Mapping[str, str], user: str) -> None:
        """Unless it was read a moment ago."""
        request, now_s = _asked(path, query), self._clock.monotonic_s()
        kept = self._stored.get((path, user, request))
        if self._commands is None or (kept is not None and now_s - kept[0] < STORED_S):
            return
        stored = Stored(can_read=True, at_us=self._clock.epoch_us(), asked=request)
        try:
            if path == DEAD:
                stored = replace(stored, nodes=await self._dead_nodes(self._commands))
                stored = await self._letters(self._commands, stored, user)
            else:
                stored = replace(stored, commands=read_audit(await self._commands.run("audit", "--json", _SINCE)))
        except (NoAnswer, WrongAnswer) as error:
            stored = replace(stored, problem=str(error))
        self._stored[path, user, request] = self._clock.monotonic_s(), stored
        self._stored.move_to_end((path, user, request))
        while len(self._stored) > STORED_KEPT:
            self._stored.popitem(last=False)

    async def _dead_nodes(self, commands: Commands) -> list[Row]:
        if self._clock.monotonic_s() - self._nodes_s > STORED_S:
            self._nodes = read_dead_nodes(await commands.run("node", "list", "--json"))
            self._nodes_s = self._clock.monotonic_s()
        return self._nodes

    async def _letters(self, commands: Commands, stored: Stored, user: str) -> Stored:
        request = stored.asked
        node = request.node or next((str(row["node"]) for row in stored.nodes), "")
        if not node:
            return stored
        stored = replace(stored, asked=replace(request, node=node))
        words = ["queue", "peek", "--json", "--sections", f"--count={LETTERS_SHOWN + 1}", f"--as={user or ANONYMOUS}"]
        words += [f"--where={request.where}"] if request.where else []
        has_parts = any(row["node"] == node and row["partitions"] > 1 for row in stored.nodes)
        words += [f"--partition={request.partition}"] if has_parts else []
        words += [f"--from={request.eid}"] if request.eid else []
        try:
            rows, more = read_letters(await commands.run(*words, operands=[node]))
        except (NoAnswer, WrongAnswer) as error:
            return replace(stored, problem=str(error))
        return replace(stored, rows=rows, more=more)
