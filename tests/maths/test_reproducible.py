"""The arithmetic is right; that its bits are the same everywhere is for pipeline/test_every_processor to show."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.reproducible import Floats, dot, inverse, log, product, total

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(NUMBERS, max_size=40))
def test_a_sum_is_rounded_once(values: list[float]) -> None:
    assert total(np.array(values, dtype=np.float64)) == float(sum(map(Fraction, values), Fraction(0)))


def test_a_product_of_vectors_does_not_depend_on_their_order() -> None:
    left, right = np.random.default_rng(1).normal(size=(2, 1000))
    order = np.random.default_rng(2).permutation(1000)
    assert dot(left, right) == dot(left[order], right[order]) == pytest.approx(left @ right)


@given(st.floats(1e-300, 1e300))
def test_a_logarithm_is_the_nearest_float(value: float) -> None:
    (found,) = log(np.array([value])).tolist()
    with ctx.workprec(500):
        true = arb(fmpq(*value.as_integer_ratio())).log()
        off = abs(true - arb(found))
        for other in (math.nextafter(found, -math.inf), math.nextafter(found, math.inf)):
            assert off <= abs(true - arb(other)) or value == 1


def test_logarithms_by_two_doubles_are_those_of_many_digits() -> None:
    chance = np.random.default_rng(3)
    places = np.arange(1, 400) / 256
    values = np.concatenate(
        [
            chance.random(4000),
            1 + chance.uniform(-1e-9, 1e-9, 500),
            np.exp(chance.uniform(-740, 700, 2000)),
            places,
            np.nextafter(places, 0),
            2.0 ** np.arange(-1074, 1023, 7),
        ]
    )
    with ctx.workprec(300):
        nearest = [float(arb(value).log().mid()) for value in values.tolist()]
    assert log(values).tolist() == nearest


def test_what_has_no_logarithm_is_not_a_number() -> None:
    assert np.isnan(log(np.array([0.0, -1.0, math.nan]))).all()


@pytest.mark.parametrize(
    ("rows", "middle", "columns"), [(3, 5, 2), (1, 9, 1), (0, 4, 3), (4, 0, 3), (2, 3, 0)]
)
def test_products_of_matrices(rows: int, middle: int, columns: int) -> None:
    chance = np.random.default_rng(rows)
    left, right = chance.normal(size=(rows, middle)), chance.normal(size=(middle, columns))
    assert product(left, right) == pytest.approx(left @ right)
    vector: Floats = chance.normal(size=middle)
    assert product(left, vector) == pytest.approx(left @ vector)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_inverses(size: int) -> None:
    matrix = np.random.default_rng(size).normal(size=(size, size))
    found = inverse(matrix)
    assert found is not None
    assert matrix @ found == pytest.approx(np.eye(size), abs=1e-9)


def test_a_singular_matrix_has_none() -> None:
    assert inverse(np.zeros((2, 2))) is None
    assert inverse(np.array([[1.0, 2.0], [2.0, 4.0]])) is None
    assert inverse(np.full((2, 2), np.nan)) is None


def test_a_pivot_of_zero_is_exchanged() -> None:
    assert inverse(np.array([[0.0, 1.0], [2.0, 0.0]])) == pytest.approx(np.array([[0.0, 0.5], [1.0, 0.0]]))
