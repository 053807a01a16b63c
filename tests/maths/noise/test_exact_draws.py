import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.maths.noise.additive import (
    AdditiveLaw,
    discrete_gaussian_of_sigma,
    discrete_laplace,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from discreet.maths.noise.draws import BitSource, draw, draw_published, from_words
from discreet.maths.noise.hellinger import hellinger
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.thresholds import UNIT, ThresholdTable, table_of_thresholds, threshold_table

KEY = bytes(range(32))
N = 400_000

dp.enable_features("contrib")


def p_value(sample: NDArray[np.int32] | NDArray[np.int64], law: Pmf) -> float:
    """Chi-square of a sample against a law; values expected fewer than ten times are pooled with their neighbours."""
    expected = law.p * len(sample)
    low = int(np.argmax(np.cumsum(expected) >= 10))
    high = len(expected) - 1 - int(np.argmax(np.cumsum(expected[::-1]) >= 10))
    cells = np.clip(sample - law.first, low, high) - low
    observed = np.bincount(cells, minlength=high - low + 1)
    pooled = expected[low : high + 1].copy()
    pooled[0] += expected[:low].sum()
    pooled[-1] += expected[high + 1 :].sum()
    return float(stats.chisquare(observed, pooled * len(sample) / pooled.sum()).pvalue)


@pytest.mark.parametrize(
    ("law", "off"),
    [
        (discrete_laplace(1), discrete_laplace(1.1)),
        (discrete_laplace(0.02), discrete_laplace(0.022)),
        (discrete_gaussian_of_sigma(2), discrete_gaussian_of_sigma(2.2)),
        (discrete_gaussian_of_sigma(100), discrete_gaussian_of_sigma(110)),
        (truncated_laplace(0.5, 7), truncated_laplace(0.55, 7)),
        (truncated_normal(1.5, 12), truncated_normal(1.65, 12)),
        (uniform(10), uniform(11)),
    ],
)
def test_samples_fit_the_law_and_not_one_ten_percent_off(law: AdditiveLaw, off: AdditiveLaw) -> None:
    sample = draw(threshold_table(law), N, BitSource(KEY))
    assert p_value(sample, law.pmf) > 1e-4
    assert p_value(sample, off.pmf) < 1e-9


def test_published_counts_of_hellinger_noise_fit_each_row() -> None:
    law = hellinger(5)
    counts = np.repeat(np.array([0, 3, 9], dtype=np.int64), 50_000)
    published = draw_published(law, counts, BitSource(KEY))
    for count in (0, 3, 9):
        assert p_value(published[counts == count], law.row(count)) > 1e-4
        assert p_value(published[counts == count], hellinger(5.5).row(count)) < 1e-9


@pytest.mark.parametrize("n", [0, 1, 65_535, 65_536, 65_537, 300_001])
def test_the_key_alone_determines_the_noise(n: int) -> None:
    table = threshold_table(discrete_gaussian_of_sigma(50))
    drawn = draw(table, n, BitSource(KEY))
    assert drawn.dtype == np.int32
    assert np.array_equal(drawn, draw(table, n, BitSource(KEY)))
    if n > 1:
        assert not np.array_equal(drawn, draw(table, n, BitSource(bytes(32))))


def test_a_stream_goes_on_where_it_stopped() -> None:
    table = threshold_table(truncated_laplace(1, 3))
    bits = BitSource(KEY)
    assert not np.array_equal(draw(table, 5000, bits), draw(table, 5000, bits))


def test_the_bits_are_aes_in_counter_mode() -> None:
    reference = Cipher(algorithms.AES(KEY), modes.CTR(bytes(16))).encryptor().update(bytes(3_000_000))
    bits = BitSource(KEY)
    shorts = np.empty(1_000_000, dtype=np.uint16)
    bits.fill(shorts)
    assert shorts.astype("<u2").tobytes() + bits.words(125_000).astype("<u8").tobytes() == reference
    with pytest.raises(ValueError, match="32 bytes"):
        BitSource(b"short")


class Scripted:
    """A source whose words are given, to reach the branches that chance does not."""

    def __init__(self, shorts: list[int], *words: list[int]) -> None:
        self._shorts, self._words = shorts, list(words)

    def fill(self, out: NDArray[np.uint16]) -> None:
        out[:] = self._shorts

    def words(self, n: int) -> NDArray[np.uint64]:
        assert n == len(self._words[0])
        return np.array(self._words.pop(0), dtype=np.uint64)


def spelled_out(table: ThresholdTable, word: int) -> int:
    """The value of one word, by the definition."""
    thresholds = [(int(h) << 64) | int(low) for h, low in zip(table.hi, table.lo, strict=True)]
    return table.first + sum(threshold <= word for threshold in thresholds)


THRESHOLDS = st.lists(
    st.one_of(
        st.integers(0, UNIT - 1),
        st.integers(0, 2**16 - 1).map(lambda slot: slot << 112),
        st.integers(0, 20).map(lambda low: (77 << 112) | (5 << 64) | low),
    ),
    min_size=1,
    max_size=30,
).map(sorted)


@given(THRESHOLDS, st.data())
def test_words_at_and_beside_every_threshold(thresholds: list[int], data: st.DataObject) -> None:
    table = table_of_thresholds(-3, thresholds, cut_tails=0)
    beside = {word + step for word in thresholds for step in (-1, 0, 1)} | {0, UNIT - 1}
    words = sorted(word for word in beside if 0 <= word < UNIT)
    words.append(data.draw(st.integers(0, UNIT - 1)))
    halves = np.array([[word >> 64, word & (2**64 - 1)] for word in words], dtype=np.uint64)
    assert from_words(table, halves).tolist() == [spelled_out(table, word) for word in words]


@given(THRESHOLDS, st.integers(0, UNIT - 1), st.integers(-2, 2))
def test_a_tie_of_64_bits_is_settled_by_the_next_64(thresholds: list[int], anywhere: int, step: int) -> None:
    table = table_of_thresholds(0, thresholds, cut_tails=0)
    for word in (anywhere, min(max(thresholds[0] + step, 0), UNIT - 1)):
        slot, upper = word >> 112, word >> 64
        ambiguous = bool(table.guide[slot] & 1)
        tied = upper in (table.hi[table.hi >> np.uint64(48) == np.uint64(slot)]).tolist()
        bits = Scripted([slot], [((upper << 16) & (2**64 - 1)) | 0xABCD], [word & (2**64 - 1)])
        found = draw(table, 1, bits)  # type: ignore[arg-type]
        assert found[0] == spelled_out(table, word)
        assert len(bits._words) in ((2,) if not ambiguous else (0, 1) if tied else (1,))


def test_words_and_streams_have_the_same_law() -> None:
    table = threshold_table(discrete_laplace(0.7))
    words = BitSource(KEY).words(2 * N).reshape(-1, 2)
    assert p_value(from_words(table, words), discrete_laplace(0.7).pmf) > 1e-4


def test_opendp_has_the_same_laws_and_privacy_maps() -> None:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    laplace = dp.m.make_laplace(*space, scale=2.0)
    ours = threshold_table(discrete_laplace(0.5))
    assert ours.certified_epsilon() == laplace.map(1) == 0.5
    sample = np.array(laplace([0] * 20_000))
    assert p_value(sample, ours.pmf()) > 1e-5
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    gaussian = dp.m.make_gaussian(*space, scale=3.0, MO="ZeroConcentratedDivergence")
    law = discrete_gaussian_of_sigma(3)
    assert law.rho == pytest.approx(gaussian.map(1.0), rel=1e-12)
    sample = np.array(gaussian([0] * 20_000))
    assert p_value(sample, law.pmf) > 1e-5
    # OpenDP's conversion of zCDP is a bound; the law itself has less
    approximate = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0)
    assert law.epsilon(1e-6) <= approximate.epsilon(1e-6)
    assert law.epsilon(1e-6) > 0.5 * approximate.epsilon(1e-6)


def test_the_distance_is_stated_and_small() -> None:
    table = threshold_table(discrete_gaussian_of_sigma(100))
    assert table.total_variation() < Fraction(1, 2**116)
    assert math.log2(table.total_variation()) < -116
