"""What is new since the reconciliation before, in words. What stays is counted, never left unsaid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciliation.history.cause import Cause
from reconciliation.history.compared import Change, Comparison
from reconciliation.model.classes import CLASSES
from reconciliation.model.window import readable

SHOWN = 20


def heading(since: Comparison) -> str:
    """One sentence, with all counts."""
    if since.before is None:
        return f"No earlier reconciliation to compare with: {_findings(len(since.new))} new."
    words = f"the reconciliation of {readable(since.before.at_us)} ({since.before.verdict})"
    return f"Since {words}: {counts_words(since)}."


def counts_words(since: Comparison) -> str:
    counts = since.counts
    words = [f"{counts['new']:,} new", f"{counts['grown']:,} grown", f"{counts['same']:,} the same"]
    words += [f"{counts['reopened']:,} not acknowledged any more"] if counts["reopened"] else []
    return ", ".join([*words, f"{counts['gone']:,} gone"])


def write(since: Comparison, damaged: Sequence[str] = (), shown: int = SHOWN) -> str:
    """The heading, then each finding that is new or has grown; the rest by its number."""
    lines = [*damaged, heading(since)]
    lines += _changes("new", since.new, shown)
    lines += _changes("grown", since.grown, shown)
    lines += _changes("not acknowledged any more", since.reopened, shown)
    lines += [f"  books new or otherwise  {line}" for line in since.books[:shown]]
    if since.same:
        amount = messages(sum(cause.count for cause in since.same))
        lines.append(f"  {_findings(len(since.same))} the same as before: {amount}, not named here.")
    if since.gone:
        lines.append(f"  Gone: {_some(since.gone, shown)}.")
    return "\n".join(lines) + "\n"


def exit_words(since: Comparison, verdict: str) -> str:
    """What `--since-last` makes of it."""
    if since.is_news:
        return "Exit code 1: something is new that is not acknowledged."
    stays = "" if verdict == "clean" else f"; the verdict is {verdict} all the same"
    return f"Exit code 0: nothing is new since the reconciliation before{stays}."


def _changes(word: str, changes: Sequence[Change], shown: int) -> Iterator[str]:
    for change in changes[:shown]:
        yield f"  {word}  {named(change.cause)}{change_words(change)}"
    if len(changes) > shown:
        yield f"  {word}  and {_findings(len(changes) - shown)} more"


def change_words(change: Change) -> str:
    """How much of it is new, or counts again."""
    words = ""
    if change.more < change.cause.count:
        words += f"; {change.more:,} more than before" if change.more else ""
        words += f"; {change.reopened:,} were acknowledged before" if change.reopened else ""
    if change.counts < change.more + change.reopened:
        words += f"; {change.more + change.reopened - change.counts:,} of them acknowledged"
    return words


def named(cause: Cause) -> str:
    """A finding in a line: its name, where it is, of how many messages, and what is said."""
    example = cause.examples[0]["detail"] if cause.examples else cause.words
    place = f" in {cause.place}" if cause.place else ""
    return f"{cause.id} {CLASSES[cause.code].name}{place}, {messages(cause.count)}: {example}"


def messages(count: int) -> str:
    return f"{count:,} message{'s' if count != 1 else ''}"


def _findings(count: int) -> str:
    return f"{count:,} finding{'s' if count != 1 else ''}"


def _some(causes: Sequence[Cause], shown: int) -> str:
    more = f" and {len(causes) - shown} more" if len(causes) > shown else ""
    return ", ".join(cause.id for cause in causes[:shown]) + more
