"""Rows and columns of published counts agree, post-processing included, and impossible counts are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from discreet.errors import Mistakes
from discreet.maths.inference.independence import PublishedMoments
from discreet.maths.inference.likelihood import log_likelihoods, peaks, tilted_sums
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace, uniform
from discreet.maths.noise.hellinger import PTableLaw, hellinger
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import (
    Negatives,
    PublishedLaw,
    Publishing,
    packed,
    written_law,
)

RULES = [
    Publishing(),
    Publishing(Negatives.ZERO),
    Publishing(Negatives.ZERO, rounding=5),
    Publishing(Negatives.ZERO, rounding=3, threshold=7),
    Publishing(rounding=2),
    Publishing(threshold=4),
]
NOISES = [PublishedLaw(truncated_laplace(0.5, 7), rule) for rule in RULES] + [
    PublishedLaw(truncated_laplace(0.5, 7), Publishing(Negatives.ZERO), keeps_zeros=True),
    PublishedLaw(PTableLaw(solve(PTableParameters(5, 2.0, 0)))),
    PublishedLaw(PTableLaw(solve(PTableParameters(5, 3.0, 2)))),
]


@pytest.mark.parametrize("noise", NOISES)
def test_columns_are_the_rows_turned_round(noise: PublishedLaw) -> None:
    rows = {a: noise.row(a) for a in range(60)}
    for x in sorted({int(x) for a in range(30) for x in rows[a].values if rows[a].at(int(x)) > 0}):
        column = noise.column(x)
        for a in range(40):
            inside = column.p[a - column.first] if column.first <= a <= column.last else 0.0
            assert inside == pytest.approx(rows[a].at(x), abs=1e-15)
        above, below = noise.tails(column, x)
        for k, a in enumerate(range(column.first, min(column.last, 59) + 1)):
            assert above[k] == pytest.approx(rows[a].tail(x), abs=1e-12)
            assert below[k] == pytest.approx(rows[a].cdf(x), abs=1e-12)


@given(st.integers(-30, 300), st.integers(1, 12), st.integers(0, 25), st.booleans())
def test_sources_are_what_is_published_so(noisy: int, rounding: int, threshold: int, clipped: bool) -> None:
    rule = Publishing(Negatives.ZERO if clipped else Negatives.KEEP, rounding, threshold)

    def shown(noisy: int) -> int:
        return int(rule.publish(np.array([noisy]))[0])

    sources = rule.sources(shown(noisy))
    assert sources is not None
    first, last = sources
    assert noisy <= last
    assert shown(last) == shown(noisy) != shown(last + 1)
    assert (first is None) == (shown(-(10**6)) == shown(noisy))
    if first is not None:
        assert first <= noisy
        assert shown(first - 1) != shown(noisy) == shown(first)


@pytest.mark.parametrize(
    ("noise", "published"),
    [
        (PublishedLaw(truncated_laplace(0.5, 7)), -8),
        (PublishedLaw(truncated_laplace(0.5, 7), Publishing(Negatives.ZERO)), -1),
        (PublishedLaw(discrete_laplace(1), Publishing(Negatives.ZERO, rounding=5)), 7),
        (PublishedLaw(discrete_laplace(1), Publishing(Negatives.ZERO, threshold=10)), 9),
        (PublishedLaw(PTableLaw(solve(PTableParameters(5, 3.0, 2)))), 1),
    ],
)
def test_counts_that_are_never_published_are_refused(noise: PublishedLaw, published: int) -> None:
    with pytest.raises(Mistakes, match=f"published count: {published}; this noise never publishes it"):
        noise.column(published)


def test_counts_that_no_country_has_are_refused() -> None:
    with pytest.raises(Mistakes, match="10000000000; inference is for counts of at most 1000000000"):
        PublishedLaw(discrete_laplace(1)).column(10**10)


def test_laws_that_cannot_be_turned_round_are_refused() -> None:
    with pytest.raises(Mistakes, match="hellinger"):
        PublishedLaw(hellinger(1)).column(1)
    with pytest.raises(Mistakes, match="sums to 1"):
        written_law([{0: 0.5, 1: 0.4}])
    with pytest.raises(Mistakes, match="empty"):
        written_law([])
    with pytest.raises(Mistakes, match="rounding"):
        Publishing(rounding=0)


def test_written_rows_are_the_law_they_write() -> None:
    law = truncated_laplace(1, 3).pmf
    written = PublishedLaw(written_law([dict(zip(law.values.tolist(), law.p.tolist(), strict=True))]))
    assert written.is_additive
    np.testing.assert_allclose(written.column(4).p, PublishedLaw(truncated_laplace(1, 3)).column(4).p)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("mu", [0.3, 4.0, 40.0])
def test_likelihood_and_moments_of_a_poisson_count_are_the_plain_sums(noise: PublishedLaw, mu: float) -> None:
    weights = poisson.pmf(np.arange(150), mu)
    rows = [noise.row(a) for a in range(150)]
    values = np.arange(min(row.first for row in rows), max(row.last for row in rows) + 1)
    p = np.array([sum(w * row.at(int(x)) for w, row in zip(weights, rows, strict=True)) for x in values])
    seen = values[p > 1e-12]
    packs = packed(noise, seen)
    found = np.exp(log_likelihoods(np.full(len(seen), mu), packs.indices(seen), packs))
    np.testing.assert_allclose(found, p[p > 1e-12], rtol=1e-9)
    mean, variance, slope = PublishedMoments(noise)(np.array([mu]))
    tolerance = 1e-9 if noise.publishing.rounding == 1 else 0.05
    assert mean[0] == pytest.approx(p @ values, rel=tolerance, abs=tolerance)
    assert variance[0] == pytest.approx(p @ (values - p @ values) ** 2, rel=tolerance)
    step = 1e-5
    high, low = (PublishedMoments(noise)(np.array([mu + move]))[0][0] for move in (step, -step))
    assert slope[0] == pytest.approx((high - low) / (2 * step), abs=1e-5)


def test_long_columns_are_summed_where_it_matters() -> None:
    packs = packed(PublishedLaw(discrete_laplace("0.1")), np.array([50]))
    assert packs.concave.all()
    at, which = np.log(np.array([70.0])), np.zeros(1, dtype=np.int64)
    plain = tilted_sums(at, which, replace(packs, concave=~packs.concave))
    np.testing.assert_allclose(tilted_sums(at, which, packs), plain, rtol=1e-10)


def test_peaks_are_where_the_likelihood_is_largest() -> None:
    noise = PublishedLaw(uniform(3), Publishing(Negatives.ZERO))
    packs = packed(noise, np.array([0, 1, 12]))
    at, most = peaks(packs)
    means = np.linspace(0, 20, 2001)
    for k in range(3):
        grid = log_likelihoods(means, np.full(len(means), k), packs)
        assert most[k] >= grid.max() - 1e-9
        assert at[k] == pytest.approx(means[int(np.argmax(grid))], abs=0.011)
