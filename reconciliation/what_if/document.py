"""The answer as JSON: what `--json` prints and `--out` keeps. The text for a terminal is made of it.

Times are microseconds since 1970. Source: docs/how-to/what-would-my-tables-have-done.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from reconciliation.model.window import BEGINNING, END
from reconciliation.what_if.facts_in_words import NOT_SIMULATED, in_words, not_recorded
from reconciliation.what_if.job import Answer, Changed, Line, Question, Totals
from reconciliation.what_if.recorded import DELIVERY
from reconciliation.what_if.verdict import Change

VERSION = 1


def document(answer: Answer, question: Question, realm: str, unread: Sequence[str]) -> dict[str, Any]:
    """`realm`: where it is, in words; `unread`: what of it could not be read."""
    other, window = question.tables, question.window
    return {
        "v": VERSION,
        "tables": {"name": question.name, "profile": other.profile, "digest": other.digest},
        "realm": realm,
        "from": window.since if window.since != BEGINNING else None,
        "to": window.until if window.until != END else None,
        "assumed": dict(question.assumed),
        "records": {
            "first": answer.at_first or None,
            "last": answer.at_last or None,
            "decided_by": [_decided_by(answer, digest) for digest, _ in answer.digests.most_common()],
            "unreadable": answer.unreadable,
            "unread": list(unread),
        },
        "deliveries": _totals(answer.deliveries),
        "others": _totals(answer.others),
        "changes": [_changed(change) for change in answer.changes],
        "not_recorded": list(not_recorded(answer, other)),
        "not_simulated": NOT_SIMULATED,
    }


def is_alike(answer: dict[str, Any]) -> bool:
    """Nothing would differ, and nothing stands open."""
    counts = (answer[part][kind] for part in ("deliveries", "others") for kind in ("differently", "undecided"))
    return not any(counts) and not answer["records"]["unreadable"] and not answer["records"]["unread"]


def _decided_by(answer: Answer, digest: str) -> dict[str, Any]:
    tables = answer.own.get(digest)
    profile = None if tables is None else tables.profile
    return {"digest": digest, "profile": profile, "deliveries": answer.digests[digest]}


def _totals(totals: Totals) -> dict[str, int]:
    return {
        "all": totals.all,
        "alike": totals.alike,
        "alike_by_another_rule": totals.renamed,
        "differently": totals.differently,
        "undecided": totals.undecided,
        "decided_by_assumption": totals.assumed,
    }


def _changed(changed: Changed) -> dict[str, Any]:
    verdict = changed.verdict
    return {
        "kind": verdict.kind,
        "what": changed.what,
        "direction": changed.direction,
        "count": changed.count,
        **(_change(verdict.change) if verdict.change is not None else {}),
        "missing": [{"fact": fact, "words": in_words(fact)} for fact in verdict.missing],
        "alternatives": [
            {"facts": [dict(choice) for choice in alternative.choices], **_change(alternative.change)}
            for alternative in verdict.alternatives
        ],
        "reason": verdict.reason or None,
        "lines": [_line(changed, line) for line in changed.lines],
        "more": {"lines": changed.of - len(changed.lines), "count": changed.unnamed},
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "old_rules": change.old_rules,
        "new_rules": change.new_rules,
        "effects": [{"name": effect.name, "old": effect.old, "new": effect.new} for effect in change.effects],
        "not_recorded": change.unrecorded or None,
        "problem": change.problem or None,
    }


def _line(changed: Changed, line: Line) -> dict[str, Any]:
    example = line.example
    has_tag = example["eid"] is not None and example["eid"] >= 0 and example["store"] is not None
    tag = f"{example['store']}:{example['eid']}" if has_tag else None
    delivery = f"{example['run']}:{example['seq']}" if example["seq"] is not None else None
    return {
        "node": line.node,
        "user": line.user,
        "container": line.container,
        "count": line.count,
        "example": {"at": example["at"], "tag": tag, "delivery": delivery, "link": example["link"]},
        "command": _command(changed, line, tag or delivery),
    }


def _command(changed: Changed, line: Line, delivery: str | None) -> str:
    if changed.what == DELIVERY and delivery is not None:
        return f"realmgate trace {delivery}"
    of_user = f" --user {shlex.quote(line.user)}" if line.user else ""
    return f"realmgate decisions list --what {changed.what}{of_user}"
