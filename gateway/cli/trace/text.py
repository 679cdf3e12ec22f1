"""Steps of a message's life as a document and as lines for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from gateway.cli.output import printable
from gateway.cli.trace.events import StoredEvent
from gateway.cli.trace.life import Life, Step
from gateway.cli.trace.outcomes import Outcome
from gateway.cli.trace.reasons import Reasons
from gateway.cli.trace.records import iso

_INDENT = " " * 42
_UNKNOWN = "time not recorded"


def document(step: Step, life: Life, reasons: Reasons) -> dict[str, Any]:
    """Every field; those that do not concern the step are absent."""
    known: dict[str, Any] = {"at": iso(step.at_us) if step.at_us is not None else None, "what": step.what}
    if step.place is not None:
        event = life.events.get(step.place)
        node = event.node.name if isinstance(event, StoredEvent) else None
        if node is None and step.outcome is not None:
            node = step.outcome.group["node"]
        known |= {"node": node, "store": step.place[0], "eid": step.place[1]}
    return known | step.fields | _answer(step, reasons)


def _answer(step: Step, reasons: Reasons) -> dict[str, Any]:
    outcome = step.outcome
    if outcome is None:
        return {}
    if step.what in ("published", "given"):
        return _link(outcome) | ({"rules": [*reasons.rules(outcome, ("",))]} if step.what == "published" else {})
    answered: dict[str, Any] = {
        key: outcome.group[key] for key in ("answer", "native", "outcome", "condition", "class")
    }
    if outcome.error is not None:
        answered["error"] = outcome.error
    return answered | {"rules": [*reasons.rules(outcome, ("answer_",) if step.what == "answered" else ("", "answer_"))]}


def refusal(outcome: Outcome, reasons: Reasons) -> dict[str, Any]:
    """A publish that was never stored."""
    group = outcome.group
    document: dict[str, Any] = {
        "at": iso(outcome.at_us),
        "what": "refused" if group["answer"] not in ("indeterminate", "stored") else "answered",
    }
    document |= {"node": group["node"], "run": outcome.run, "seq": outcome.seq}
    if outcome.message_id is not None:
        document["message_id"] = outcome.message_id
    answer = {key: group[key] for key in ("operation", "answer", "native", "outcome", "condition", "class")}
    return document | _link(outcome) | answer | {"rules": [*reasons.rules(outcome)]}


def _link(outcome: Outcome) -> dict[str, Any]:
    group = outcome.group
    return {"link": group["name"], "container": group["container"], "user": group.get("user")}


def lines(step: dict[str, Any]) -> Iterator[str]:
    """A step's document: one line, and one for each rule."""
    place = f"{step['store']}:{step['eid']}" if "store" in step else ""
    where = printable(step["node"]) if step.get("node") is not None else place
    if step.get("durable"):
        where += f"/{printable(step['durable'])}"
    text = _WORDS.get(step["what"], _settled)(step)
    yield f"{step['at'] or _UNKNOWN:<24}  {step['what']:<15} {where}: {text}"
    for rule in step.get("rules", ()):
        because = rule["because"] or "its reason is not recorded, and the tables have changed since"
        yield f"{_INDENT}rule {rule['table']}.{rule['rule']}: {because}"
    if step.get("error"):
        words = (step["error"].get(key) for key in ("condition", "description", "info"))
        yield f"{_INDENT}error {' '.join(json.dumps(word) for word in words if word is not None)}"


def _published(step: dict[str, Any]) -> str:
    return f"{_by(step)} as delivery {step['run']}:{step['seq']}"


def _by(step: dict[str, Any]) -> str:
    if "link" not in step:
        return "by a link that is not recorded,"
    user = f"user {printable(step['user'])}" if step["user"] else "a user that is not recorded"
    return f"by {user}, container {printable(step['container'])}, link {printable(step['link'])},"


def _given(step: dict[str, Any]) -> str:
    return f"{_by(step).replace('by ', 'to ', 1)} as delivery {step['run']}:{step['seq']}"


def _stored(step: dict[str, Any]) -> str:
    tag = f"{step['store']}:{step['eid']}"
    return f"tag {tag}, {step['octets']} octets, in topic {step['topic']} partition {step['partition']}"


def _answered(step: dict[str, Any]) -> str:
    """Where no event is known, which delivery it is, too."""
    return f"{_delivery(step)}: {_outcome(step)}" if "link" in step else _outcome(step)


def _delivery(step: dict[str, Any]) -> str:
    name = f", message-id {printable(step['message_id'])}" if "message_id" in step else ""
    return f"{_published(step)}{name}"


def _outcome(step: dict[str, Any]) -> str:
    words = [step["outcome"], step["condition"], f"(native answer {step['answer']}"]
    if step["native"]:
        words[-1] += f", {step['native']}"
    return " ".join(word for word in words if word) + ")"


def _refused(step: dict[str, Any]) -> str:
    return f"{_delivery(step)}: {_outcome(step)}; it was not stored"


def _waits(step: dict[str, Any]) -> str:
    words = [_holder(step)]
    if step["given"]:
        words.insert(0, "it was given before")
    if step["failed"]:
        words.append(f"{step['failed']} attempts failed")
    if step.get("not_before"):
        words.append(f"it is not given before {step['not_before']}")
    return f"not settled now: {', '.join(words)}"


def _holder(step: dict[str, Any]) -> str:
    """Who has it, as serving gateways say: no record does before the settlement."""
    held = step["held_by"]
    if held is not None:
        who = (
            f"user {printable(held['user'])}, container {printable(held['container'])}, link {printable(held['link'])}"
        )
        return f"held by {who} since {held['since']} as delivery {held['run']}:{held['seq']}"
    if "holder_unknown" in step:
        return f"whether a link holds it is not known ({step['holder_unknown']})"
    return "no link holds it"


def _settled(step: dict[str, Any]) -> str:
    words = [f"{step['operation']}, cause {step['cause']}"]
    if step.get("seq"):
        words.append(f"delivery {step['run']}:{step['seq']}")
    if "outcome" in step:
        words.append(f"answered {_outcome(step)}")
    if step.get("not_before"):
        words.append(f"not given again before {step['not_before']}")
    if "to_node" in step:
        to = printable(step["to_node"]) if step["to_node"] is not None else "a node that was deleted"
        words.append(
            f"to {to}" + (f" as {', '.join(step['to'])}" if step["to"] else ", where the copy is kept no more")
        )
    elif step["operation"] in ("dead-letter", "expired"):
        words.append("kept nowhere: the node had no dead-letter node")
    if "given_again" in step:
        words.append("given again" if step["given_again"] else f"the place is {step['to_eid']}: it counts as settled")
    if "command" in step:
        command = step["command"]
        by = f" by {printable(command['who'])}" if "who" in command else ""
        why = f" ({printable(command['why'])})" if command.get("why") else ""
        words.append(f"commanded at {command['at']}{by}{why}")
    return ", ".join(words)


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "published": _published,
    "stored": _stored,
    "answered": _answered,
    "given": _given,
    "refused": _refused,
    "waits": _waits,
}
