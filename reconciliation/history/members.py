"""Which messages a finding is of, in a form that stays small: EIDs of one store as ranges, all else by a word each.
More than `MOST` of these become a sum of digests: so the memory of one finding has a bound, whatever its messages are.

As text it is a list of parts: `17-20` and `33` are EIDs; `RUN:SEQ` a delivery; `TEXT x3` stands for three messages of
which no more is known. A word of one message that ends so itself has ` x1` behind it. What is too scattered for a list
is one part, `digest HEX`: that can only be the same, or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from reconciliation.model.withdrawn import merged

PARTS_MAX = 50
"""So many parts are kept of one finding; more of them are a digest."""
MOST = 100_000
"""So many ranges and words are known of one finding, and twice as many while they are added. More of them are the sum
of a digest each. Then an EID that comes twice counts twice."""
_RANGE = re.compile(r"(\d{1,19})(?:-(\d{1,19}))?")
_TIMES = re.compile(r"(.+) x([1-9]\d{0,18})", re.DOTALL)
_DIGEST = "digest "


@dataclass(slots=True)
class Members:
    """`eids`: ranges, first and last; sorted, and apart from each other, after `settle`. `others`: word -> messages.
    `digest`: they are known by it alone, and are so `many`."""

    eids: list[tuple[int, int]] = field(default_factory=list)
    others: dict[str, int] = field(default_factory=dict)
    digest: str = ""
    many: int = 0
    _sum: int | None = field(default=None, init=False, compare=False)
    _left: int = field(default=0, init=False, compare=False)  # so many ranges, when they were joined last

    @classmethod
    def of(cls, parts: Sequence[str], messages: int) -> Members:
        """What `parts` has written. Raises ValueError for what it does not write."""
        if len(parts) == 1 and parts[0].startswith(_DIGEST):
            return cls(digest=parts[0].removeprefix(_DIGEST), many=messages)
        members = cls()
        for part in parts:
            if (numbers := _RANGE.fullmatch(part)) is not None:
                first = int(numbers[1])
                members.eids.append((first, int(numbers[2] or first)))
            elif (times := _TIMES.fullmatch(part)) is not None:
                members.others[times[1]] = int(times[2])
            else:
                members.others[part] = 1
        members.settle()
        if members.count != messages or any(first > last for first, last in members.eids):
            raise ValueError(f"{messages} messages, and {', '.join(parts)} are {members.count}")
        return members

    @property
    def count(self) -> int:
        return self.many + sum(last - first + 1 for first, last in self.eids) + sum(self.others.values())

    def add(self, row: dict[str, Any], in_words: bool) -> None:
        """A row of the findings. `in_words`: its EID is an example of several, or says nothing."""
        eid, count = row["eid"], row["count"]
        is_eid = not in_words and count == 1 and eid is not None and eid >= 0
        if is_eid and self._sum is None:
            if self.eids and self.eids[-1][1] + 1 == eid:
                self.eids[-1] = (self.eids[-1][0], eid)
            else:
                self.eids.append((eid, eid))
        else:
            word = str(eid) if is_eid else row["detail"] if row["seq"] is None else f"{row['run']}:{row['seq']}"
            if self._sum is None:
                self.others[word] = self.others.get(word, 0) + count
            else:
                self._add_up(word, count)
        if len(self.eids) + len(self.others) > MOST + self._left:
            self._shrink()

    def _shrink(self) -> None:
        """Join ranges; where too many are left, go on with a sum."""
        if self._sum is not None:
            return
        self.eids = merged(self.eids)
        self._left = len(self.eids)
        if len(self.eids) + len(self.others) > MOST:
            eids, others = self.eids, self.others
            self.eids, self.others, self._sum = [], {}, 0
            for first, last in eids:
                for eid in range(first, last + 1):
                    self._add_up(str(eid), 1)
            for word, count in others.items():
                self._add_up(word, count)

    def _add_up(self, word: str, count: int) -> None:
        assert self._sum is not None
        self._sum += int.from_bytes(blake2b(word.encode(), digest_size=16).digest()) * count
        self.many += count

    def settle(self) -> None:
        """Once all have been added."""
        self._shrink()
        if self._sum is not None:
            self.digest = f"sum {self._sum % 2**128:032x}"

    def parts(self) -> list[str]:
        """To keep."""
        if self.digest:
            return [_DIGEST + self.digest]
        if len(self.eids) + len(self.others) <= PARTS_MAX:
            return [*self._words()]
        return [_DIGEST + self._digest()]

    def without(self, known: Members) -> Members:
        """Those that are not in `known`. Where one of the two is a digest: none when both are the same, else all."""
        if self.digest or known.digest:
            same = (self.digest or self._digest()) == (known.digest or known._digest())
            return Members() if same else self
        others = {word: count - known.others.get(word, 0) for word, count in self.others.items()}
        return Members([*_minus(self.eids, known.eids)], {word: count for word, count in others.items() if count > 0})

    def _digest(self) -> str:
        return blake2b("\n".join(self._words()).encode(), digest_size=16).hexdigest()

    def _words(self) -> Iterator[str]:
        yield from (str(first) if first == last else f"{first}-{last}" for first, last in self.eids)
        for word, count in sorted(self.others.items()):
            is_plain = count == 1 and not _TIMES.fullmatch(word) and not _RANGE.fullmatch(word)
            yield word if is_plain else f"{word} x{count}"


def _minus(ranges: Iterable[tuple[int, int]], others: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Both are sorted, and have gaps between."""
    at = 0
    for first, last in ranges:
        begin = first
        while at < len(others) and others[at][1] < begin:
            at += 1
        index = at
        while index < len(others) and others[index][0] <= last:
            if others[index][0] > begin:
                yield begin, others[index][0] - 1
            begin = others[index][1] + 1
            index += 1
        if begin <= last:
            yield begin, last
