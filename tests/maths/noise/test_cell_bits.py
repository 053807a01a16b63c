import numpy as np
import pytest
from scipy import stats

from discreet.maths.noise.additive import discrete_laplace
from discreet.maths.noise.draws import cell_bits, from_words
from discreet.maths.noise.thresholds import threshold_table

SECRET = bytes(range(32))


def codes(n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    return np.stack([np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64)], axis=1)


def test_the_same_cell_has_the_same_bits_wherever_it_stands() -> None:
    all_of_them = cell_bits(SECRET, "release 1", codes(1000))
    some = cell_bits(SECRET, "release 1", codes(1000)[[7, 999, 0]])
    assert np.array_equal(all_of_them[[7, 999, 0]], some)
    assert len({tuple(word) for word in all_of_them.tolist()}) == 1000
    assert cell_bits(SECRET, "release 1", codes(0)).shape == (0, 2)


def test_purposes_and_secrets_are_unrelated() -> None:
    here = cell_bits(SECRET, "release 1", codes(100))
    assert not (here == cell_bits(SECRET, "release 2", codes(100))).any()
    assert not (here == cell_bits(bytes(32), "release 1", codes(100))).any()
    with pytest.raises(ValueError, match="secret"):
        cell_bits(b"", "release 1", codes(1))


def test_known_bits() -> None:
    """Pinned, because a release must be repeatable on every machine."""
    assert [hex(word) for word in cell_bits(SECRET, "pinned", codes(1))[0].tolist()] == [
        "0x17cc52aac875d3fd",
        "0x5e1a5a0b1d6a7587",
    ]


def test_bits_look_uniform_and_draw_the_law() -> None:
    words = cell_bits(SECRET, "law", codes(200_000))
    for half in (0, 1):
        counts = np.bincount((words[:, half] >> np.uint64(56)).astype(np.int64), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4
    drawn = from_words(threshold_table(discrete_laplace(1)), words)
    assert np.var(drawn) == pytest.approx(discrete_laplace(1).pmf.variance, rel=0.03)
    # neighbours in description are not correlated
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.01
