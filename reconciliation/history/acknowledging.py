"""An entry is added to the file of acknowledgements, or takes the place of the one of its name. All else in the file
stays as it was written, comments included.

Errors: `SettingsError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date

from reconciliation.history.acknowledged import Acknowledged, parse
from reconciliation.history.cause import Cause
from reconciliation.model.classes import CLASSES
from reconciliation.model.settings import SettingsError

_HEAD = """# Findings of reconciliations that are known and accepted, each to the end of a day (UTC).
# `realmgate reconcile --acknowledge` writes them; remove what is not found any more.
acknowledged:
"""


def with_entry(content: bytes | None, file: str, cause: Cause, until: date, by: str, reason: str) -> bytes:
    """The file's content with all messages that `cause` has now. `content`: as it was; None: there is none."""
    if not (content or b"").strip():
        content = _HEAD.encode()
    assert content is not None
    known = parse(content, file)
    if not known.is_block:
        raise SettingsError(f"{file}: its entries stand in braces; write each in lines of its own")
    lines = content.decode().splitlines()
    entry = [" " * known.column + line for line in _entry(cause, until, by, reason)]
    here = next((block for block in known.entries if block.id == cause.id), None)
    if here is not None:
        lines[here.line - 1 : here.last] = entry
    else:
        at = max((block.last for block in known.entries), default=_top(lines))
        lines[at:at] = entry
    changed = ("\n".join(lines) + "\n").encode()
    _check(parse(changed, file), cause)
    return changed


def _entry(cause: Cause, until: date, by: str, reason: str) -> Iterator[str]:
    place = f" in {cause.place}" if cause.place else ""
    yield f"{cause.id}:"
    yield f"  until: {until.isoformat()}"
    yield f"  by: {_quoted(by)}"
    yield f"  reason: {_quoted(reason)}"
    yield f"  what: {_quoted(f'{CLASSES[cause.code].name} ({cause.code}){place}')}"
    yield f"  messages: {cause.count}"
    yield "  of:"
    yield from (f"    - {_quoted(part)}" for part in cause.members.parts())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _top(lines: list[str]) -> int:
    """Behind the key; where it says that there is nothing, it says so no more."""
    at = next(index for index, line in enumerate(lines) if line.startswith("acknowledged"))
    lines[at] = "acknowledged:"
    return at + 1


def _check(written: Acknowledged, cause: Cause) -> None:
    """What was written is what is read."""
    [entry] = [block for block in written.entries if block.id == cause.id]
    if entry.members.parts() != cause.members.parts():
        raise SettingsError(f"{written.file}: {cause.id} cannot be written to it; name another file")
