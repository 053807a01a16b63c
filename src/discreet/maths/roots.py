"""The zero of a function between two points where its signs differ."""

from __future__ import annotations

import math
from collections.abc import Callable

RELATIVE = 4 * 2.0**-52  # of the zero, besides the absolute tolerance
MOST_STEPS = 100


def zero_between(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """The zero by Brent's method (Brent 1973, chapter 4): secants and inverse parabolas, bisection where they fail.

    Step by step what ``scipy.optimize.brentq`` does; importing that takes longer than a whole command should.
    """
    before, at, other = low, high, 0.0
    value_before, value, value_other = function(before), function(at), 0.0
    if value_before == 0:
        return before
    if value == 0:
        return at
    if (value_before < 0) == (value < 0):
        raise ValueError("the function has the same sign at both ends")
    step = last_step = 0.0
    for _ in range(MOST_STEPS):
        if value_before != 0 and (value_before < 0) != (value < 0):
            other, value_other = before, value_before
            last_step = step = at - before
        if abs(value_other) < abs(value):
            before, at, other = at, other, at
            value_before, value, value_other = value, value_other, value
        near = (tolerance + RELATIVE * abs(at)) / 2
        half = (other - at) / 2
        if value == 0 or abs(half) < near:
            return at
        tried = math.inf
        if abs(last_step) > near and abs(value) < abs(value_before):
            if before == other:
                tried = -value * (at - before) / (value - value_before)
            else:
                slope, far = (value_before - value) / (before - at), (value_other - value) / (other - at)
                tried = (
                    -value * (value_other * far - value_before * slope)
                    / (far * slope * (value_other - value_before))
                )  # fmt: skip
        is_short = 2 * abs(tried) < min(abs(last_step), 3 * abs(half) - near)
        last_step, step = (step, tried) if is_short else (half, half)
        before, value_before = at, value
        at += step if abs(step) > near else math.copysign(near, half)
        value = function(at)
    raise ValueError(f"no zero was found in {MOST_STEPS} steps")
