"""Random draws from conditional laws, positions of codes, and identifiers of the synthetic census."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.lazy import njit
from discreet.programme.codelist import Code, Codelist, codelist
from discreet.programme.eu2021 import codelist_rows
from discreet.text.phrase import translated

OUTSIDE = translated("Not in a private household", {"de": "Nicht in einem Privathaushalt"})
NOT_PRIVATE = "X"  # household size and type of a person outside private households


@cache
def tree(variable: str) -> Codelist:
    """The codelist of a variable that is the same for every country."""
    return codelist(variable, rows(variable))


def rows(variable: str) -> list[Code]:
    """The codes of a variable of the programme, or of the household's size and type as stored with its members."""
    outside = Code(NOT_PRIVATE, "", OUTSIDE)
    if variable == "HHSIZE":
        return [*codelist_rows("SPH"), outside]
    if variable == "HHTYPE":
        return [*codelist_rows("TPH"), outside]
    return codelist_rows(variable)


@cache
def leaf(variable: str) -> Mapping[str, int]:
    """Each leaf's code and its number in a column."""
    return {code: index for index, code in enumerate(tree(variable).leaf_codes)}


def leaf_numbers(variable: str, *codes: str) -> list[int]:
    """The numbers of some leaves, in the order given."""
    return [leaf(variable)[code] for code in codes]


BITS = 48
_MASK = np.uint64((1 << BITS) - 1)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(BITS // 2)


def identifiers(numbers: NDArray[np.int64], seed: int, kind: int) -> NDArray[np.int64]:
    """Turn running numbers below 2^48 into identifiers from 1 to 2^48, one to one for each seed and kind.

    Every step (adding, an odd factor modulo 2^48, folding the upper half into the lower) is a bijection.
    """
    offset = np.random.SeedSequence([seed, kind]).generate_state(1, np.uint64)[0] & _MASK
    mixed = (numbers.astype(np.uint64) + offset) & _MASK
    for factor in _FACTORS:
        mixed = (mixed * factor) & _MASK
        mixed ^= mixed >> _SHIFT
    unique: NDArray[np.int64] = mixed.astype(np.int64) + 1
    return unique


Floats = NDArray[np.float32]
Ints = NDArray[np.int16]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

OLDEST = 104  # ages are drawn up to here; the codes end with 100 and over


@dataclass(frozen=True, eq=False)
class ConditionalLaw:
    """Conditional probabilities of outcomes, one row for each condition."""

    cumulative: Floats  # (condition, outcome), the last outcome above every uniform number


def law(weights: Sequence[Any] | NDArray[np.float64]) -> ConditionalLaw:
    """Build a law from non-negative weights (condition, outcome); a single row may be one-dimensional."""
    table = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    cumulative = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
    beyond = np.arange(table.shape[1]) >= last[:, None]  # rounding must not select an outcome of weight zero
    return ConditionalLaw(np.where(beyond, 2.0, cumulative).astype(np.float32))


def age_law(*bands: Sequence[tuple[int, int, float]]) -> ConditionalLaw:
    """Build a law of single years from bands (first age, last age, weight), one row per condition.

    The steps between the bands are smoothed over nine years, never beyond the first and the last age.
    """
    rows = []
    for pieces in bands:
        steps = np.zeros(OLDEST + 1)
        for first, last, weight in pieces:
            steps[first : last + 1] += weight / (last - first + 1)
        rows.append(np.where(steps > 0, np.convolve(steps, np.ones(9) / 9, mode="same"), 0.0))
    return law(rows)


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _pick(cumulative: Floats, rows: NDArray[np.int32], uniforms: Floats, out: Ints) -> None:
    for i in range(rows.size):
        row = rows[i]
        low = 0
        high = cumulative.shape[1] - 1
        while low < high:
            middle = (low + high) >> 1
            if uniforms[i] < cumulative[row, middle]:
                high = middle
            else:
                low = middle + 1
        out[i] = low


class Dice:
    """A separate stream of random numbers for each block, so that nothing depends on the order of computation."""

    def __init__(self, seed: int, *stream: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *stream])))

    def uniform(self, count: int) -> Floats:
        """Numbers in [0, 1)."""
        return self._generator.random(count, dtype=np.float32)

    def normal(self, count: int) -> Floats:
        """Standard normal numbers."""
        return self._generator.standard_normal(count, dtype=np.float32)

    def chance(self, probability: ArrayLike, count: int) -> Flags:
        """True with the given probability (one for all, or one each)."""
        return self.uniform(count) < np.asarray(probability, dtype=np.float32)

    def pick(self, given: ConditionalLaw, rows: NDArray[np.integer]) -> Ints:
        """One outcome for each row of the law."""
        out = np.empty(rows.size, dtype=np.int16)
        _pick(given.cumulative, rows.astype(np.int32), self.uniform(rows.size), out)
        return out

    def pick_many(self, given: ConditionalLaw, count: int) -> Ints:
        """Outcomes of a law with a single row."""
        return self.pick(given, np.zeros(count, dtype=np.int32))

    def binomial(self, trials: Whole, probability: float) -> Whole:
        """Successes among trials."""
        return self._generator.binomial(trials, probability).astype(np.int64)

    def lognormal(self, spread: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Positive factors around one."""
        return self._generator.lognormal(0.0, spread, shape)
