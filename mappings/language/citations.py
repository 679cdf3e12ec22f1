"""The ids that a rule may cite as its `source`: where it is written that the rule must be so.

Rows of the delivery-state tables (`S-A5`), their non-row facts (`NF-4`), readings of what the tables leave ambiguous
(`1.3-B`), requirements of the AMQP 1.0 messaging text (`2.H-7`: part H, number 7), and sections (`3.6`, or `P2` and
`P4` for Parts 2 and 4 of AMQP 1.0). A rule that cites an unknown id is refused: it could not be looked up.

Source: semantics reference sections 1.1, 1.3, 2, 3, 5.
"""

from __future__ import annotations

ROWS = (
    *(f"S-A{number}" for number in range(1, 10)),
    *(f"S-R1{letter}" for letter in "abcde"),
    *(f"S-R2{letter}" for letter in "ab"),
    *(f"P-A{number}" for number in range(1, 7)),
    "P-R1",
    *(f"P-R2{letter}" for letter in "abcd"),
    *(f"P-R3{letter}" for letter in "abcd"),
    "S-REL",
    "S-MOD",
    *(f"T-C{number}" for number in range(1, 6)),
    "T-D1",
    "T-D2",
    "T-P1",
    *(f"T-P2{letter}" for letter in "abcd"),
    "T-S1",
    "T-S2",
)

_PARTS = {
    "A": 15,
    "B": 8,
    "C": 4,
    "D": 5,
    "E": 5,
    "F": 2,
    "G": 4,
    "H": 15,
    "I": 9,
    "J": 6,
    "K": 6,
    "L": 3,
    "M": 11,
    "N": 1,
    "O": 6,
    "P": 5,
    "Q": 5,
    "R": 7,
    "S": 2,
    "T": 3,
    "U": 5,
    "V": 2,
    "W": 21,
    "X": 4,
}

CITATIONS = frozenset(
    (
        *ROWS,
        *(f"NF-{number}" for number in range(1, 11)),
        *(f"1.3-{letter}" for letter in "ABCDEFGHIJKLMNOPQ"),
        *(f"2.{part}-{number}" for part, count in _PARTS.items() for number in range(1, count + 1)),
        *("3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "5", "P2", "P4"),
    )
)
