"""Ranges of true counts, from what is public of the noise and from nothing else."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.programme.programme import Disclosure, Programme
from discreet.serve.answer import Answer
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme
from tests.cases import few
from tests.serve.conftest import SECRET, query

Make = Callable[[Disclosure], Answer]


@pytest.fixture
def answered(programme: Programme, store: Store) -> Make:
    def made(disclose: Disclosure) -> Answer:
        told = replace(programme, release=replace(programme.release, disclose=disclose))
        found = serve_programme(told, SECRET, store).ask(query("GEO.H", "EDU"), "u")
        assert isinstance(found, Answer)
        return found

    return made


def test_a_public_law_gives_exact_ranges_within_the_bound(answered: Make) -> None:
    answer = answered(Disclosure.LAW)
    for cell in range(0, answer.size, 7):
        found = answer.noise_range(cell, 0.95)
        value = int(answer.values[cell])
        assert found is not None
        assert max(0, value - 5) <= found.low <= value <= found.high <= value + 5
        assert "at least 95% probability" in found.message
    narrow, wide = answer.noise_range(0, 0.5), answer.noise_range(0, 0.99)
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low <= narrow.high < wide.high


def test_a_public_variance_gives_rough_ranges(answered: Make) -> None:
    answer = answered(Disclosure.VARIANCE)
    found = answer.noise_range(0, 0.95)
    assert found is not None
    assert (found.low, found.high) == (answer.values[0] - 3, answer.values[0] + 3)  # 1.96 sqrt(2.0) and up
    assert "largest variance" in found.message
    assert "variance of at most 2" in answer.noise


@pytest.mark.parametrize("disclose", few([Disclosure.LAW, Disclosure.VARIANCE, Disclosure.NONE], 0))
def test_the_ranges_of_all_cells_are_those_of_each(answered: Make, disclose: Disclosure) -> None:
    answer = answered(disclose)
    low, high = answer.intervals(0.9)
    each = [answer.noise_range(cell, 0.9) for cell in range(answer.size)]
    nothing = (math.nan, math.nan)
    expected = [nothing if one is None else (one.low, one.high) for one in each]
    np.testing.assert_array_equal(np.stack([low, high], axis=1), np.array(expected, dtype=np.float64))
    assert np.isnan(low).all() == (disclose is Disclosure.NONE)


def test_nothing_public_gives_no_range(answered: Make) -> None:
    assert answered(Disclosure.NONE).noise_range(0, 0.95) is None


def test_a_level_that_is_none_is_refused(builder: TableBuilder) -> None:
    answer = builder.ask(query("SEX"), "u")
    assert isinstance(answer, Answer)
    with pytest.raises(Mistakes, match="level"):
        answer.noise_range(0, 1.5)
