"""What is done to a gateway in one case, as text: a line a step. Cases are recorded, bred, replayed and kept so.

gateway plain                  which gateway it is done to (`subject.GATEWAYS`)
0 send 414d515000010000        connection 0 sends octets
0 stall                        it reads no more
0 read                         it does again
0 pass 61                      seconds go by
0 lose                         its socket is gone
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

VERBS = ("send", "stall", "read", "pass", "lose")


@dataclass(frozen=True, slots=True)
class Step:
    """One line: `data` of a send, `seconds` of a pass."""

    connection: int
    verb: str
    data: bytes = b""
    seconds: int = 0

    def __str__(self) -> str:
        rest = {"send": f" {self.data.hex()}", "pass": f" {self.seconds}"}.get(self.verb, "")
        return f"{self.connection} {self.verb}{rest}"


@dataclass(slots=True)
class Case:
    """Everything that one gateway is done to."""

    gateway: str = "plain"
    steps: list[Step] = field(default_factory=list)
    about: str = ""

    def __str__(self) -> str:
        about = "".join(f"# {line}\n" for line in self.about.splitlines())
        return about + f"gateway {self.gateway}\n" + "".join(f"{step}\n" for step in self.steps)

    def then(self, *steps: Step) -> Case:
        """The same gateway, and these steps instead."""
        return Case(self.gateway, list(steps), self.about)


def read_case(path: Path) -> Case:
    """Errors: ValueError where a line is none."""
    case = Case()
    for line in path.read_text().splitlines():
        words = line.split()
        if line.startswith("#"):
            case.about += line.removeprefix("#").strip() + "\n"
        elif words[:1] == ["gateway"]:
            case.gateway = words[1]
        elif words:
            case.steps.append(_step(words))
    return case


def _step(words: list[str]) -> Step:
    connection, verb, rest = int(words[0]), words[1], words[2] if len(words) > 2 else ""
    if verb not in VERBS:
        raise ValueError(f"{verb} is no step")
    return Step(connection, verb, bytes.fromhex(rest) if verb == "send" else b"", int(rest) if verb == "pass" else 0)


def cases_in(directory: Path) -> list[Case]:
    return [read_case(path) for path in sorted(directory.glob("*.case"))]
