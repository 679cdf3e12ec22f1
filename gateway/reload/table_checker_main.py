"""Loading in a process of its own: `python -m gateway.reload.table_checker_main` reads a line of JSON, `{"directory",
"profile"}`, and answers with one, `{"document": {...}, "because": {...}, "errors": {...}}` (the expanded tables, why
their rules are as they are, and the native errors of the directory; null: the shipped ones) or `{"problems": [...]}`;
until its input ends.

A gateway asks it to read and check tables while it serves: beside its loop, and beside its interpreter.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mappings.compiler.loading import Loader
from transformers.events.installed import complaint_about

PROBLEMS_MAX = 1000  # that a gateway gets, logs and keeps for its pages: a file may have one in each line


def main() -> None:
    loader = Loader(complaint_about)
    for line in sys.stdin:
        question = json.loads(line)
        directory = Path(question["directory"]) if question["directory"] else None
        checked = loader.answer(directory, question["profile"])
        if len(checked.get("problems", ())) > PROBLEMS_MAX:
            left_out = f"and {len(checked['problems']) - PROBLEMS_MAX} more; realmgate mappings check lists them all"
            checked["problems"] = [*checked["problems"][:PROBLEMS_MAX], left_out]
        sys.stdout.write(json.dumps(checked, separators=(",", ":")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
