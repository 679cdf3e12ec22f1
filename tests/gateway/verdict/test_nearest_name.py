"""The name that was meant: at most two edits away."""

from __future__ import annotations

from gateway.verdict.nearest_name import edits, nearest_name


def test_the_nearest_name() -> None:
    assert nearest_name("ordres", ["orders", "prices"]) == "orders"
    assert nearest_name("ORDERS", ["orders"]) == "orders"
    assert nearest_name("invoices", ["orders"]) == ""
    assert (edits("ab", "ba"), edits("kitten", "sitting"), edits("", "abc")) == (1, 3, 3)
