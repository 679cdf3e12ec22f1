"""Problems as a person, a program or a pull request reads them.

    text      FILE:LINE:COLUMN: what is wrong; what to write instead
    json      {"problems": [{"file", "line", "column", "message", "remedy"}], "count": 2}
    github    ::error file=...,line=...,col=...::what is wrong; what to write instead   (workflow commands)

Source: GitHub's workflow commands, for what must be escaped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

from mappings.language.yaml_lines import Problem

FORMATS = ("text", "json", "github")


def write_problems(problems: Sequence[Problem], form: str, out: TextIO) -> int:
    """Write them all; the exit code that they mean."""
    if form == "json":
        documents = [
            {"file": p.file, "line": p.line, "column": p.column, "message": p.message, "remedy": p.remedy}
            for p in problems
        ]
        out.write(json.dumps({"problems": documents, "count": len(documents)}, indent=1, ensure_ascii=False) + "\n")
    elif form == "github":
        out.writelines(_annotation(problem) for problem in problems)
    else:
        out.writelines(f"{problem.place}: {problem.sentence}\n" for problem in problems)
        if problems:
            out.write(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}\n")
    return 1 if problems else 0


def _annotation(problem: Problem) -> str:
    file = _escaped(problem.file).replace(":", "%3A").replace(",", "%2C")
    return f"::error file={file},line={problem.line},col={problem.column}::{_escaped(problem.sentence)}\n"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
