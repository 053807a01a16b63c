"""Turning probabilities into whole numbers of keys that sum to the modulus and keep the mean at zero.

It owns the rounding; what the numbers are used for is the lookup's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def apportion(p: Sequence[float], v: Sequence[int], modulus: int) -> list[int]:
    """Give each change v its number of keys, near p * modulus, so that sum n = modulus and the mean is kept.

    The law is first freed of its rounding error (sum 1, mean 0), then rounded by largest remainders, then single
    keys move between changes until no move brings sum v n nearer to zero. A law too biased to be freed keeps its
    own mean instead.
    """
    exact = [share * modulus for share in _unbiased([Fraction(value) for value in p], v)]
    keys = [int(share) for share in exact]
    by_remainder = sorted(range(len(keys)), key=lambda at: (keys[at] - exact[at], at))
    for at in by_remainder[: modulus - sum(keys)]:
        keys[at] += 1
    return _centred(keys, exact, v)


def _unbiased(p: list[Fraction], v: Sequence[int]) -> list[Fraction]:
    """Tilt a law to p (a + b v), with a and b such that it sums to 1 and has mean 0 exactly."""
    total = sum(p, Fraction(0))
    first = sum((share * change for share, change in zip(p, v, strict=True)), Fraction(0))
    second = sum((share * change**2 for share, change in zip(p, v, strict=True)), Fraction(0))
    spread = total * second - first**2
    if spread == 0:
        return [share / total for share in p]
    tilted = [share * (second - first * change) / spread for share, change in zip(p, v, strict=True)]
    return tilted if min(tilted) >= 0 else [share / total for share in p]


def _centred(keys: list[int], exact: list[Fraction], v: Sequence[int]) -> list[int]:
    """Move single keys between changes, the least harmful first, while that brings the mean nearer to the law's."""
    keys, wanted = list(keys), [float(share) for share in exact]
    aim = round(sum((share * change for share, change in zip(exact, v, strict=True)), Fraction(0)))
    bias = sum(change * number for change, number in zip(v, keys, strict=True)) - aim
    while bias:
        best = _best_move(keys, wanted, v, bias)
        if best is None:
            break
        giver, taker = best
        keys[giver] -= 1
        keys[taker] += 1
        bias += v[taker] - v[giver]
    return keys


def _best_move(keys: list[int], wanted: list[float], v: Sequence[int], bias: int) -> tuple[int, int] | None:
    """Find the move that harms the law least per unit of bias removed; the harm is the squared relative error."""
    less = [_harm(number, share, -1) for number, share in zip(keys, wanted, strict=True)]
    more = [_harm(number, share, 1) for number, share in zip(keys, wanted, strict=True)]
    best, least = None, float("inf")
    for giver in range(len(keys)):
        for taker in range(len(keys)):
            removed = abs(bias) - abs(bias + v[taker] - v[giver])
            if removed <= 0 or keys[giver] == 0 or wanted[taker] == 0:
                continue
            harm = (less[giver] + more[taker]) / removed
            if harm < least:
                best, least = (giver, taker), harm
    return best


def _harm(keys: int, wanted: float, step: int) -> float:
    """How much one key more or less adds to (n - wanted)^2 / wanted."""
    off = keys - wanted
    return ((off + step) ** 2 - off**2) / max(wanted, 1e-9)
