"""Loading in a process of its own: `python -m gateway.table_loading` reads a line of JSON, `{"directory", "profile"}`,
and answers with one, `{"document": {...}, "errors": {...}}` (the expanded tables, and the native errors of the
directory; null: the shipped ones) or `{"problems": [...]}`; until its input ends.

A gateway asks it to read and check tables while it serves: beside its loop, and beside its interpreter.
May import: the standard library, `mappings`, `transformers.installed`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mappings.loading import Loader
from transformers.installed import complaint_about

PROBLEMS_MAX = 1000  # that a gateway is told, logs and keeps for its pages: a file may have one in each line


def main() -> None:
    loader = Loader(complaint_about)
    for line in sys.stdin:
        question = json.loads(line)
        directory = Path(question["directory"]) if question["directory"] else None
        said = loader.answer(directory, question["profile"])
        if len(said.get("problems", ())) > PROBLEMS_MAX:
            left_out = f"and {len(said['problems']) - PROBLEMS_MAX} more; realmgate mappings check tells them all"
            said["problems"] = [*said["problems"][:PROBLEMS_MAX], left_out]
        sys.stdout.write(json.dumps(said, separators=(",", ":")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
