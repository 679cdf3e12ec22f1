"""What we do where a requirement of AMQP leaves a choice, or where we depart from its letter, and why: a line each, for
`docs/conformance/amqp.md`. `OPEN`: what is binding and has no test yet.
"""

from __future__ import annotations

CHOICES: dict[str, str] = {}
OPEN_IDS = """
    A-4 A-5 A-10 A-11 A-13 A-14 C-1 D-2 D-4 E-1 E-2 E-3 E-4 E-5 G-4 H-1 H-2 H-6 H-8 H-10 H-13 H-15 J-3
    J-5 K-1 K-5 M-1 M-2 M-3 M-4 M-5 M-6 M-7 M-8 M-9 M-10 P-3 Q-2 Q-3 Q-4 Q-5 R-3 T-1 U-5 W-1 W-3 W-6
    W-16 W-17
"""
OPEN = frozenset(OPEN_IDS.split())
