"""What a Containerfile says: its stages, each with its instructions. Continued lines are one; comments are left out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field


@dataclass
class Build:
    """`instructions`: name and the rest of the line, in order."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == instruction]

    def command(self, instruction: str) -> list[str]:
        """The words of the last ENTRYPOINT, CMD or HEALTHCHECK."""
        words: list[str] = json.loads(self.all(instruction)[-1].partition("[")[2].join(("[", "")))
        return words

    def copied(self) -> list[str]:
        """From the context."""
        sources = [rest.split()[:-1] for rest in self.all("COPY") if not rest.startswith("--from=")]
        return [source for paths in sources for source in paths]


def stages(text: str) -> list[Build]:
    builds: list[Build] = []
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            base, _, stage = rest.partition(" AS ")
            builds.append(Build(base, stage))
        else:
            builds[-1].instructions.append((name, rest.strip()))
    return builds
