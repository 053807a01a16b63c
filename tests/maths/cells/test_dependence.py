"""How far one column decides another: against a direct computation over records."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.maths.cells.dependence import Dependence, dependence


def by_records(x: list[int], y: list[int]) -> Dependence:
    predicted, judged = 0, []
    for k in range(len(x)):
        others = Counter(y[j] for j in range(len(x)) if j != k and x[j] == x[k])
        if others:
            judged.append(y[k])
            best = others.most_common(2)
            alone = len(best) == 1 or best[0][1] > best[1][1]
            predicted += alone and best[0][0] == y[k]
    return Dependence(predicted, max(Counter(judged).values(), default=0), len(judged))


def of(x: list[int], y: list[int]) -> Dependence:
    pairs = Counter(zip(x, y, strict=True))
    columns = np.array([[a, b, n] for (a, b), n in pairs.items()], dtype=np.int64).reshape(-1, 3)
    return dependence(*columns.T)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30))
def test_each_record_is_left_out_of_its_own_prediction(records: list[tuple[int, int]]) -> None:
    x, y = [a for a, _ in records], [b for _, b in records]
    assert of(x, y) == by_records(x, y)


def test_a_function_is_decided_and_rare_values_prove_nothing() -> None:
    draw = np.random.default_rng(1)
    x = draw.integers(0, 50, 5000).tolist()
    assert of(x, [value % 7 for value in x]).share == 1
    assert of(x, draw.integers(0, 7, 5000).tolist()).share < 0.05
    many = draw.integers(0, 20_000, 5000).tolist()  # nearly every value once
    assert of(many, draw.integers(0, 7, 5000).tolist()).share < 0.05
    assert of([], []).share == 0
    assert of([1, 1, 1], [2, 2, 2]).share == pytest.approx(0)
