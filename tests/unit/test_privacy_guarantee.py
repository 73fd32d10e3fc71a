"""Guarantees are frozen values that print as two lines and never promise too much."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from cumae import Guarantee, InvalidParameter
from cumae.privacy import REPLACE_ONE, ZCDP, Approximate, Gaussian, Pure, or_fail

FULL = Guarantee(
    epsilon=1.25,
    delta=1e-6,
    protects="one labelled training row",
    relation=REPLACE_ONE,
    claims=("SUB", "LB"),
    assumptions=("rows belong to different people", "sizes are public"),
    rho=0.03,
    void=False,
    covers="all answers together, for ever",
)


def test_a_guarantee_is_frozen_and_compares_by_value() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.epsilon = 0.1  # type: ignore[misc]
    assert dataclasses.replace(FULL) == FULL
    assert hash(dataclasses.replace(FULL)) == hash(FULL)
    assert dataclasses.replace(FULL, epsilon=1.0) != FULL


def test_it_prints_as_two_lines_and_the_rest_on_request() -> None:
    assert str(FULL).splitlines() == [
        "(epsilon = 1.25, delta = 1e-06)-differential privacy for one labelled training row.",
        "It covers all answers together, for ever.",
    ]
    assert FULL.full().splitlines() == [
        *str(FULL).splitlines(),
        "As zero-concentrated differential privacy: rho = 0.03.",
        f"Two tables are neighbours if {REPLACE_ONE}.",
        "Assumptions:",
        "- rows belong to different people",
        "- sizes are public",
        "Claims: SUB, LB.",
    ]
    bare = Guarantee(1.0, 0.0, "one vote", "one vote changes", ())
    assert bare.full().splitlines() == [
        "(epsilon = 1, delta = 0)-differential privacy for one vote.",
        "It covers what is released and every use of it, for ever.",
        "Two tables are neighbours if one vote changes.",
        "Assumptions: none.",
        "Claims: none.",
    ]


def test_a_guarantee_that_was_stored_before_it_said_what_it_covers_is_read() -> None:
    plain = FULL.to_dict()
    del plain["covers"]
    assert Guarantee.from_dict(plain).covers == "what is released and every use of it, for ever"


def test_a_void_guarantee_says_so_first() -> None:
    sentence = str(dataclasses.replace(FULL, void=True))
    assert sentence.startswith("VOID, no privacy at all, because random_state was given.")
    assert str(FULL).splitlines()[0].rstrip(".") in sentence
    assert len(sentence.splitlines()) == 2
    assert "rho" not in dataclasses.replace(FULL, void=True).full()
    assert str(dataclasses.replace(FULL, void=True, epsilon=math.inf)).startswith("VOID")
    assert "VOID" not in str(FULL)


@pytest.mark.parametrize(
    "value",
    [
        1 / 3,
        2 / 3,
        1.00001,
        1.000004,
        0.99999,
        0.999996,
        12345.678,
        123456.7,
        9.99999e-7,
        1e-300,
        0.1,
    ],
)
def test_printed_figures_are_never_below_the_true_ones(value: float) -> None:
    for field, text in (("epsilon", r"epsilon = ([^,]+),"), ("rho", r"rho = (\S+)\.")):
        change: dict[str, Any] = {field: value}
        sentence = dataclasses.replace(FULL, **change).full()
        found = re.search(text, sentence)
        assert found is not None
        # A float lies within half a unit of its decimal; that much is not "below".
        assert Decimal(found.group(1)) >= Decimal(value) * (1 - Decimal("2e-15"))
        assert float(found.group(1)) <= value * 1.0001
    if value < 1:
        found = re.search(r"delta = ([^)]+)\)", str(dataclasses.replace(FULL, delta=value)))
        assert found is not None
        assert Decimal(found.group(1)) >= Decimal(value) * (1 - Decimal("2e-15"))


def test_an_infinite_epsilon_prints() -> None:
    assert str(Guarantee(math.inf, 0.0, "a row", REPLACE_ONE, ())).startswith("NO PRIVACY")


@pytest.mark.parametrize(
    "guarantee",
    [
        FULL,
        dataclasses.replace(FULL, void=True),
        dataclasses.replace(FULL, rho=None, assumptions=()),
        dataclasses.replace(FULL, epsilon=math.inf, rho=math.inf),
        dataclasses.replace(FULL, epsilon=1 / 3, delta=1 / 7),
    ],
)
def test_it_survives_json(guarantee: Guarantee) -> None:
    text = json.dumps(guarantee.to_dict(), allow_nan=False)
    assert Guarantee.from_dict(json.loads(text)) == guarantee


@pytest.mark.parametrize("number", [np.float64(1.5), np.int64(1), np.float32(0.5), 1])
def test_numbers_of_other_types_survive_json(number: Any) -> None:
    guarantee = Guarantee(number, 0.0, "a row", REPLACE_ONE, (), rho=number)
    again = Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict(), allow_nan=False)))
    assert again == guarantee


def test_the_dictionary_is_a_copy() -> None:
    plain = FULL.to_dict()
    plain["claims"].append("MADE UP")
    assert FULL.claims == ("SUB", "LB")


@pytest.mark.parametrize(
    "change", [{"sigma": 1.0}, {"epsilon": "much"}, {"epsilon": None}, {"delta": 1.0}, {"rho": "x"}]
)
def test_dictionaries_that_are_no_guarantee_raise(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Guarantee.from_dict(FULL.to_dict() | change)


@pytest.mark.parametrize("missing", ["epsilon", "delta", "protects", "relation", "claims"])
def test_dictionaries_that_lack_a_field_raise(missing: str) -> None:
    plain = FULL.to_dict()
    del plain[missing]
    with pytest.raises(InvalidParameter):
        Guarantee.from_dict(plain)


def test_reading_a_cost() -> None:
    cost = Pure(0.25) * 4
    guarantee = Guarantee.of(cost, protects="a row", claims=("COMP",), delta=1e-6)
    assert guarantee.epsilon == cost.epsilon(1e-6) <= 1.0
    assert (guarantee.delta, guarantee.relation, guarantee.void) == (1e-6, REPLACE_ONE, False)
    assert guarantee.rho == pytest.approx(4 * 0.25**2 / 2)
    assert Guarantee.of(Gaussian(2.0), protects="a row", claims=()).epsilon == math.inf
    assert Guarantee.of(Pure(math.inf), protects="a row", claims=()).rho is None
    assert Guarantee.of(ZCDP(0.1, 1e-9), protects="a row", claims=(), delta=0.1).rho is None
    assert Guarantee.of(Approximate(1.0, 0.1), protects="a row", claims=(), delta=0.1).rho is None
    assert Guarantee.of(or_fail(Pure(1.0), 0.1), protects="a row", claims=(), delta=0.2).rho is None


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
def test_reading_a_cost_at_its_own_delta_yields_its_own_epsilon(eps: float, delta: float) -> None:
    """A search that stops a hair above would promise more than was asked, and print 1.0001."""
    for cost in (
        Approximate(eps, delta),
        or_fail(Pure(eps), delta),
        or_fail(Pure(eps / 4) * 4, delta),
    ):
        guarantee = Guarantee.of(cost, protects="a row", claims=(), delta=delta)
        assert guarantee.within(eps, delta), guarantee
        assert f"(epsilon = {eps:g}," in str(guarantee)


def test_a_void_guarantee_is_within_nothing() -> None:
    assert not dataclasses.replace(FULL, void=True).within(math.inf, 0.5)


def test_within() -> None:
    assert FULL.within(1.25, 1e-6)
    assert FULL.within(math.inf, 0.5)
    assert not FULL.within(1.2499, 1e-6)
    assert not FULL.within(2.0, 1e-7)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("epsilon", value) for value in (math.nan, -1.0, True, "1", None)),
        *(("delta", value) for value in (math.nan, -1e-9, 1.0, 2.0, True, "0", None)),
        *(("rho", value) for value in (math.nan, -1.0, True, "1")),
    ],
)
def test_bad_fields_raise(field: str, value: Any) -> None:
    with pytest.raises(InvalidParameter) as raised:
        dataclasses.replace(FULL, **{field: value})
    assert f"{field}={value!r}" in str(raised.value)
