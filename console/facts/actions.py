"""What a user may have changed from the console: each is a command of `realmgate`, given for that user (`--as`), with a
reason. The words of the command, and what must be typed before it runs. Pure.

Another action is another entry of ACTIONS, and its words in `command_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import join
from typing import Final, NamedTuple

from console.limits import REASON

_TARGET_MAX: Final = 1_000


class Kind(NamedTuple):
    """`fields`: what names the target, the first one is typed as confirmation; `about`: what will happen, by which
    rule; `has_dry_run`: the command can say before how much it means."""

    title: str
    fields: tuple[str, ...]
    about: str
    right: str
    has_dry_run: bool = False
    optional: tuple[str, ...] = ()
    asks: str = ""
    """A field that is asked for before anything is tried, with its words."""
    asks_about: str = ""


ACTIONS: Final[Mapping[str, Kind]] = {
    "resend": Kind(
        "Send dead letters back",
        ("node",),
        "Each letter goes back to the node that gave it up, in one transaction, and begins anew there. What has no such"
        " node, or one that is full, stays. Mend the cause first: else they come back.",
        "purge on the node",
        has_dry_run=True,
        optional=("where",),
    ),
    "move": Kind(
        "Move messages",
        ("node", "to"),
        "Each message is copied to the other node, octet by octet, and ends here in the same transaction. What a"
        " consumer has at the moment stays.",
        "purge on the node, publish on the other one",
        has_dry_run=True,
        optional=("where",),
        asks="to",
        asks_about="the node that gets them",
    ),
    "purge": Kind(
        "Delete messages",
        ("node",),
        "The messages are deleted for ever. What a consumer has at the moment stays.",
        "purge on the node",
        has_dry_run=True,
        optional=("where",),
    ),
    "close": Kind(
        "Close a connection",
        ("id", "gateway"),
        "The peer gets a CLOSE with amqp:connection:forced and the reason. What its consumers had not settled comes"
        " back, and no attempt is counted. Its client may connect again.",
        "manage on the realm",
    ),
    "seek": Kind(
        "Set the place of a durable",
        ("durable", "node", "to"),
        "What lies below counts as settled; everything from there on is given again, and attempts are forgotten. It is"
        " refused while a consumer is attached.",
        "manage on the node",
        asks="to",
        asks_about="an EID, beginning, end, or a time with its zone",
    ),
    "delete": Kind(
        "Delete a durable",
        ("durable", "node"),
        "Its links end with amqp:not-found, its place is gone. A link of that name begins anew later.",
        "manage on the node",
    ),
}


@dataclass(frozen=True, slots=True)
class Target:
    """One action on one thing. `values` has the fields that the action knows, and no others."""

    do: str
    values: tuple[tuple[str, str], ...]

    @property
    def kind(self) -> Kind:
        return ACTIONS[self.do]

    def __getitem__(self, name: str) -> str:
        return dict(self.values).get(name, "")

    @property
    def typed(self) -> str:
        """What must be typed before it is done."""
        return self[self.kind.fields[0]]

    @property
    def missing(self) -> list[str]:
        return [name for name in self.kind.fields if not self[name]]


def target_of(form: Mapping[str, str]) -> Target | None:
    """None: there is no such action."""
    kind = ACTIONS.get(form.get("do", ""))
    if kind is None:
        return None
    names = (*kind.fields, *kind.optional)
    return Target(form["do"], tuple((name, form.get(name, "").strip()[:_TARGET_MAX]) for name in names))


def command_of(target: Target, dry_run: bool = False) -> tuple[list[str], list[str]]:
    """The words of the command and its options, and its operands, which may begin with anything."""
    how = ["--dry-run"] if dry_run else []
    how += [f"--where={target['where']}"] if target["where"] else []
    if target.do == "resend":
        return ["queue", "resend", "--to-origin", *how], [target["node"]]
    if target.do == "move":
        return ["queue", "move", f"--to={target['to']}", *how], [target["node"]]
    if target.do == "purge":
        return ["queue", "purge", *how], [target["node"]]
    if target.do == "close":
        return ["connection", "close", f"--gateway={target['gateway']}"], [target["id"]]
    to = [f"--to={target['to']}"] if target.do == "seek" else []
    return ["durable", target.do, *to], [target["node"], target["durable"]]


def reason_of(target: Target, why: str) -> str:
    """The option that says why, as each command has it."""
    return f"--{'reason' if target.do == 'close' else 'why'}={why[:REASON]}"


def shown(target: Target, dry_run: bool = False) -> str:
    """The same, to copy."""
    words, operands = command_of(target, dry_run)
    marked = ["--", *operands] if any(operand.startswith("-") for operand in operands) else operands
    return join(["realmgate", *words, *marked])
