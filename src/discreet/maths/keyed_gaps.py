"""The gap of a tuple whose noise comes from summed cell keys: a total's key is the sum of its parts' keys.

It owns the joint law that this makes of parts and total; independent noises are bound_disclosure's.
"""

from __future__ import annotations

import numpy as np

from discreet.maths.lookup import Lookup
from discreet.maths.pmf import Floats, Pmf

BINS = 4096  # of equally many keys


def keyed_gap_law(lookup: Lookup, parts: int) -> Pmf:
    """The law of sum of parts - total for large counts, whose n parts have independent, uniform keys.

    The keys are taken in bins. The offsets within the bins sum up to k whole bins with the probability A(n, k)/n! (the
    Eulerian numbers: Irwin and Hall's law), so that only bins with an interval's end in them are approximate.
    """
    shares = _shares(lookup)
    reach = len(shares) // 2
    size = 2 * reach * parts + 1
    joint = np.fft.ifft2(np.fft.fft2(shares, (size, BINS)) ** parts).real  # (summed change, bin) -> p
    carried = sum(p * np.roll(joint, k, axis=1) for k, p in enumerate(_eulerian_shares(parts)))
    gap = np.zeros(size + 2 * reach)
    for at, given in enumerate(shares * BINS):  # the total's change, from -reach on
        gap[2 * reach - at : 2 * reach - at + size] += carried @ given
    return Pmf(-reach * (parts + 1), np.maximum(gap, 0.0))


def _shares(lookup: Lookup) -> Floats:
    """(change from -reach on, bin) -> share of all keys, in the row of large counts."""
    begin, end = int(lookup.offsets[-2]), int(lookup.offsets[-1])
    upper = lookup.upper[begin:end].astype(np.float64) * (BINS / lookup.modulus)
    changes = lookup.change[begin:end]
    reach = int(np.abs(changes).max())
    shares = np.zeros((2 * reach + 1, BINS))
    edges = np.arange(BINS, dtype=np.float64)
    for change, low, high in zip(changes.tolist(), [0.0, *upper[:-1]], upper, strict=True):
        shares[change + reach] += np.clip(np.minimum(high, edges + 1) - np.maximum(low, edges), 0, None)
    return shares / BINS


def _eulerian_shares(parts: int) -> list[float]:
    """A(n, k)/n!: the probability that n uniform numbers of [0, 1) sum up to k and a bit."""
    shares = [1.0]
    for n in range(2, parts + 1):
        before = [0.0, *shares, 0.0]
        shares = [((k + 1) * before[k + 1] + (n - k) * before[k]) / n for k in range(n)]
    return shares
