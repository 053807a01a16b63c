"""Sums and differences of noisy counts: how probably their noises cancel, so that the result is the true one.

It owns the arithmetic; which counts are added and subtracted is the caller's.

With independent noises X_i and Y_j, Pr[sum X_i - sum Y_j = 0] is the mean over the frequencies w = 2 pi f / N of the
product of the characteristic functions, phi_X(w)^m for m noises of one law and its conjugate for those subtracted.
With N frequencies it is the probability of a multiple of N: exact where no value of the sum is as far as N, and never
too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from discreet.maths.pmf import Pmf

MOST_FREQUENCIES = 2**14


def cancel(added: Mapping[Pmf, int], subtracted: Mapping[Pmf, int]) -> float:
    """Pr[the noises add up to zero]; each law comes with how many noises have it."""
    terms = [*added.items(), *subtracted.items()]
    farthest = sum(many * max(abs(law.first), abs(law.last)) for law, many in terms)
    n = min(MOST_FREQUENCIES, 2 << farthest.bit_length())
    factors = [_transform(law, n) ** many for law, many in added.items()]
    factors += [np.conj(_transform(law, n)) ** many for law, many in subtracted.items()]
    product = reduce(np.multiply, factors, np.ones(n // 2 + 1, dtype=np.complex128))
    return float(np.clip(np.fft.irfft(product, n)[0], 0.0, 1.0))


def _transform(law: Pmf, n: int) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
    wrapped = np.bincount(law.values % n, weights=law.p, minlength=n)
    return np.fft.rfft(wrapped).astype(np.complex128)
