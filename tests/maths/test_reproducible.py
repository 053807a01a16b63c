"""The arithmetic is right; that its bits are the same everywhere is for pipeline/test_every_processor to show."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths import reproducible
from discreet.maths.reproducible import Floats, dot, in_order, inverses, log, total, totals

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(NUMBERS, max_size=40))
def test_a_sum_is_rounded_once(values: list[float]) -> None:
    assert total(np.array(values, dtype=np.float64)) == float(sum(map(Fraction, values), Fraction(0)))


def test_each_line_has_its_own_sum() -> None:
    lines = np.random.default_rng(4).normal(size=(3, 50)) * 10.0 ** np.arange(-25, 25)
    assert totals(lines).tolist() == [total(line) for line in lines]
    lines[1, 3], lines[2, 3:5] = np.nan, [np.inf, -np.inf]
    assert np.isnan(totals(lines)).tolist() == [False, True, True]


def test_a_sum_in_order_is_the_same_with_zeros_at_its_end() -> None:
    values = np.random.default_rng(5).normal(size=(2, 3, 40))
    expected = np.zeros((2, 3))
    for column in range(40):
        expected = expected + values[:, :, column]
    longer = np.concatenate([values, np.zeros((2, 3, 9))], axis=2)
    assert in_order(values).tobytes() == in_order(longer).tobytes() == expected.tobytes()
    one = np.array([1e16, 1.0, -1e16, 1.0])
    assert in_order(one) == 1.0  # another order finds 0 or 2
    assert in_order(one[None, None]).tolist() == [[1.0]]


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


def inverse(matrix: Floats) -> Floats | None:
    found, exists = inverses(matrix[None])
    return found[0] if exists[0] else None


@pytest.mark.parametrize("size", [1, 2, 7, 30, 60])
def test_inverses(size: int) -> None:
    matrices = np.random.default_rng(size).normal(size=(3, size, size))
    given = matrices.copy()
    found, exist = inverses(matrices)
    assert exist.all()
    assert matrices @ found == pytest.approx(np.broadcast_to(np.eye(size), found.shape), abs=1e-9)
    assert matrices.tobytes() == given.tobytes()


def test_a_singular_matrix_has_none() -> None:
    assert inverse(np.zeros((2, 2))) is None
    assert inverse(np.array([[1.0, 2.0], [2.0, 4.0]])) is None
    assert inverse(np.full((2, 2), np.nan)) is None
    matrices = np.array([np.zeros((2, 2)), 2 * np.eye(2), np.full((2, 2), np.nan)])
    found, exist = inverses(matrices)
    assert exist.tolist() == [False, True, False]
    assert found[1].tolist() == [[0.5, 0.0], [0.0, 0.5]]


def test_a_pivot_of_zero_is_exchanged() -> None:
    assert inverse(np.array([[0.0, 1.0], [2.0, 0.0]])) == pytest.approx(np.array([[0.0, 0.5], [1.0, 0.0]]))
    turned = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 4.0], [8.0, 0.0, 0.0]])
    assert inverse(turned) == pytest.approx(np.array([[0, 0, 0.125], [0.5, 0, 0], [0, 0.25, 0]]))


@pytest.mark.parametrize("size", [1, 2, 5, 23])
def test_matrices_inverted_together_have_the_bits_of_the_kernel(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(size)
    matrices = rng.normal(size=(20, size, size))
    matrices[rng.random(matrices.shape) < 0.3] = 0.0
    matrices[:5] += 10 * np.eye(size)
    found, exist = inverses(matrices)
    monkeypatch.setattr(reproducible, "LARGE", 0)
    by_kernel, exist_too = inverses(matrices)
    assert exist.tolist() == exist_too.tolist()
    assert (found[exist] + 0.0).tobytes() == (by_kernel[exist] + 0.0).tobytes()  # zeros have no sign here
