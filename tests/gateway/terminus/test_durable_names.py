"""What durables are called: no two subscribers have one name, and what an earlier release called theirs is found."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gateway.terminus.durable_names import Subscriber, containers_of, durable_name, subscriber
from native_backend.nodes.durable import Durable
from native_backend.nodes.durable_terms import EXCLUSIVE, VOLATILE, DurableTerms, decode_terms, encode_terms

SHARED = DurableTerms(shared=True)
_TEXT = st.text(st.sampled_from([*":%|aA3B25escaped"]), max_size=8) | st.text(max_size=8)
SUBSCRIBERS = st.builds(subscriber, _TEXT, _TEXT, st.booleans(), st.booleans())


def earlier_name(owner: Subscriber, volatile: bool) -> str:
    """As releases before this one joined them, and cut them."""
    return f"{owner[0] or ''}:{owner[1].partition('|')[0]}" + ("|volatile" if volatile else "")


def durable(name: str, terms: DurableTerms = EXCLUSIVE) -> Durable:
    return Durable("c", name, 1, "g", 0, terms=terms)


@given(SUBSCRIBERS, SUBSCRIBERS, st.booleans(), st.booleans())
def test_no_two_subscribers_have_one_name(first: Subscriber, other: Subscriber, lasts: bool, other_lasts: bool) -> None:
    mine, theirs = durable_name(first, not lasts), durable_name(other, not other_lasts)
    if (first, lasts) != (other, other_lasts):
        assert mine.name != theirs.name
    if first != other and mine.name != earlier_name(first, not lasts) and not mine.stays:
        assert mine.name != earlier_name(other, not other_lasts), "what was stored under a name is not taken for it"


@given(SUBSCRIBERS, SUBSCRIBERS)
def test_what_was_stored_is_its_subscribers_until_another_has_it(first: Subscriber, other: Subscriber) -> None:
    stored = durable(earlier_name(first, False), SHARED if first[0] is None else EXCLUSIVE)
    assert durable_name(first).means(stored)
    taken = replace(stored, terms=replace(stored.terms, subscriber=durable_name(first).subscriber))
    assert durable_name(first).means(taken)
    assert durable_name(other).means(taken) == (first == other)
    assert first[0] is None or first[0] in containers_of(stored)
    assert containers_of(taken) == ([] if first[0] is None else [first[0]])


@given(SUBSCRIBERS, st.booleans())
def test_a_name_says_whose_it_is(owner: Subscriber, lasts: bool) -> None:
    named = durable(
        durable_name(owner, not lasts).name if not lasts else called(owner), SHARED if owner[0] is None else EXCLUSIVE
    )
    assert containers_of(named) == ([] if owner[0] is None else [owner[0]])


def called(owner: Subscriber) -> str:
    """A new one, where no other has that name."""
    names = durable_name(owner)
    return names.earlier if names.stays else names.name


def test_names_as_people_see_them() -> None:
    """The ordinary ones are what they were."""
    names = {
        ("app", "orders"): "app:orders",
        ("app", "orders|eu"): "app:orders%7Ceu|escaped",
        ("app", "orders%7Ceu"): "app:orders%7Ceu",
        ("app", "orders|escaped"): "app:orders%7Cescaped|escaped",
        ("app:1", "a:b|c"): "app%3A1:a%3Ab%7Cc|escaped",
        (None, "orders"): ":orders",
        ("app:1", "orders"): "app%3A1:orders|escaped",
        ("app", "1:orders"): "app:1%3Aorders|escaped",
        ("app%3A1", "orders"): "app%3A1:orders",
        ("app:%3A", "orders"): "app%3A%253A:orders|escaped",
        ("", "orders"): "%:orders|escaped",
        (None, "a:b"): ":a%3Ab|escaped",
    }
    assert {owner: called(owner) for owner in names} == names
    assert durable_name(("a:b", "s"), volatile=True).name == "a%3Ab:s|escaped|volatile"
    assert subscriber("app", "orders|2", shared=True) == ("app", "orders")
    assert subscriber("app", "orders|2", shared=False) == ("app", "orders|2")
    assert subscriber("app", "orders|global", shared=False, all_containers=True) == (None, "orders")


def test_a_global_shared_durable_is_not_that_of_an_empty_container() -> None:
    for name in ("orders", "a:b"):
        own, everybodys = durable_name(("", name)), durable_name((None, name))
        assert own.means(durable(f":{name}")) and not own.means(durable(f":{name}", SHARED))
        assert everybodys.means(durable(f":{name}", SHARED)) and not everybodys.means(durable(f":{name}"))


def test_terms_keep_the_subscriber() -> None:
    for subscribed in (None, ("app:1", "orders"), (None, "a:b")):
        for terms in (EXCLUSIVE, SHARED, VOLATILE):
            kept = replace(terms, subscriber=subscribed)
            assert decode_terms(encode_terms(kept)) == kept
