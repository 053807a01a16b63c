"""The averaging attack (Bach 2020, section 3.3 and annex B.3): probability of success by formula, and its kernels.

``recovery`` is the risk of averaging wherever one is judged: by the adviser, the gates, the audit and the server's
history guard. The functions with k/t^2 are the paper's, which averages with equal weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily, njit
from discreet.maths.noise.law import Pmf

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HALF = 0.5
LONGEST_SUM = 2**22  # values of a sum of noises that are computed exactly


def success(variance: float, ratio: float) -> float:
    """Pr[abs(mean noise) < 1/2] = erf(1/2 / sqrt(2 V k/t^2)), the summed noise taken as normal."""
    return math.erf(HALF / math.sqrt(2 * variance * ratio))


@dataclass(frozen=True)
class Recovery:
    """The best linear unbiased combination of t sums that represent one count."""

    t: int
    variance: float

    @property
    def probability(self) -> float:
        """How likely its rounded value is the true count, its error taken as normal."""
        return float(successes(np.array([self.variance]))[0])


def recovery(variances: Floats) -> Recovery:
    """Combine independent sums with these variances: weights 1/q, variance 1 / sum(1/q) (Aitken 1935).

    A sum of m cells whose noise is independent with variance V has the variance m V.
    """
    return Recovery(len(variances), float(1 / (1 / np.asarray(variances, dtype=np.float64)).sum()))


def chebyshev(variance: float, ratio: float, within: float = HALF) -> float:
    """The least Pr[abs(mean noise) < xi] >= 1 - V k/t^2 / xi^2 of any noise (eq. 12)."""
    return max(0.0, 1 - variance * ratio / within**2)


def contour(confidence: float) -> float:
    """V k / t^2 at which averaging succeeds with this probability: 1 / (8 erfinv(alpha)^2), 0.2528 at 68 %."""
    return float(1 / (8 * special.erfinv(confidence) ** 2))


def chebyshev_contour(confidence: float, within: float = HALF) -> float:
    """V k / t^2 at which Chebyshev's bound has this value: (1 - alpha) xi^2."""
    return (1 - confidence) * within**2


def least_variance(ratio: float, confidence: float) -> float:
    """The least variance of a cell's noise at which averaging succeeds with at most this probability."""
    return contour(confidence) / ratio


def laplace_epsilon(variance: float) -> float:
    """The epsilon of continuous Laplace noise, V = 2 / epsilon^2."""
    return math.sqrt(2 / variance)


def geometric_epsilon(variance: float) -> float:
    """The epsilon of two-sided geometric noise, V = 2a / (1-a)^2 = 1 / (2 sinh^2(epsilon/2))."""
    return 2 * math.asinh(math.sqrt(1 / (2 * variance)))


def exact_success(noise: Pmf, k: int, t: int) -> float | None:
    """Pr[abs(sum of k noises) < t/2] from the law itself, to some 1e-12; None where the sum has too many values."""
    width = k * (len(noise.p) - 1) + 1
    if width > LONGEST_SUM:
        return None
    size = 1 << width.bit_length()
    summed = np.fft.irfft(np.fft.rfft(noise.p, size) ** k, size)[:width]
    values = np.arange(width, dtype=np.int64) + k * noise.first
    return min(1.0, float(summed[2 * np.abs(values) < t].sum()))


class Method(IntEnum):
    """How representations are averaged."""

    MEAN = 0  # equal weights (Bach 2020, eq. 19 and 20)
    RISKIEST = 1  # equal weights, as many of those with the fewest cells as minimise k/t^2 (annex B.3)
    WEIGHTED = 2  # by the inverse of the variance


@dataclass(frozen=True, eq=False)
class Laid:
    """The mapping of cells to targets: runs of cells, and the target of each of their codes."""

    firsts: Integers  # run -> its first cell
    lasts: Integers  # run -> the cell behind its last
    codes_at: Integers  # run -> index of the codes of its first cell
    rows: Floats  # (run, count) -> variance of the noise of a cell with this count, the last for all larger ones
    places: NDArray[
        np.int32
    ]  # code -> place of its target along each axis, one axis after the other; -1 for none
    starts: Integers  # axis -> where its places begin
    strides: Integers  # axis -> weight of a place in the number of the target

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As the kernels take them."""
        where = (self.firsts, self.lasts, self.codes_at, self.rows)
        return (*where, self.places, self.starts, self.strides)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _target(codes: Any, at: Any, places: Any, starts: Any, strides: Any) -> Any:
    """The target of a cell: the places of its codes times the strides; -1 where a code has no place."""
    number = 0
    for k in range(strides.size):
        place = places[starts[k] + codes[at + k]]
        if place < 0:
            return -1
        number += place * strides[k]
    return number


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mixed(group: Any) -> Any:
    """A number of 64 bits that looks random, so that sums of them distinguish sets of groups (splitmix64)."""
    x = (np.uint64(group) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mixed_groups(groups: Any, marks: Any) -> None:
    """The mixed number of every cell's group."""
    for c in range(groups.size):
        marks[c] = mixed(groups[c])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_cells(
    codes: Any,
    values: Any,
    counts: Any,
    mixed_group: Any,
    firsts: Any,
    lasts: Any,
    codes_at: Any,
    rows: Any,
    places: Any,
    starts: Any,
    strides: Any,
    targets: Any,
    known: Any,
    s: Any,
    n: Any,
    k: Any,
    q: Any,
    marks: Any,
) -> None:
    """Add up the cells of each target: values, counts, number, variances, and a hash of their groups.

    ``targets`` takes the target of each cell, one run after the other, for the kernels that follow. Counts that are not
    known are not added up.
    """
    last, i = rows.shape[1] - 1, 0
    for run in range(firsts.size):
        at = codes_at[run]
        for c in range(firsts[run], lasts[run]):
            a = _target(codes, at, places, starts, strides)
            at += strides.size
            targets[i] = a
            i += 1
            if a >= 0:
                s[a] += values[c]
                k[a] += 1
                marks[a] += mixed_group[c]
                if known:
                    n[a] += counts[c]
                q[a] += rows[run, min(counts[c], last)] if last else rows[run, 0]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_shared(
    counts: Any,
    groups: Any,
    firsts: Any,
    lasts: Any,
    rows: Any,
    targets: Any,
    q: Any,
    used: Any,
    first_used: Any,
    begun: Any,
    shared: Any,
    weighted: Any,
) -> Any:
    """Add the covariance terms of each cell with the cells of the same group in earlier representations.

    ``used`` stores for every group how often and with which weights 1/q_i it was used; a group lies in one target, so
    that one array serves all. ``first_used`` lists the groups in the order of their first use; returns how many.
    """
    last, i = rows.shape[1] - 1, 0
    for run in range(firsts.size):
        for c in range(firsts[run], lasts[run]):
            a = targets[i]
            i += 1
            if a >= 0 and q[a] > 0:
                group = groups[c]
                variance = rows[run, min(counts[c], last)] if last else rows[run, 0]
                times = used[group, 0]
                if times == 0:
                    first_used[begun] = group
                    begun += 1
                shared[a] += 2 * variance * times
                weighted[a] += 2 * variance * used[group, 1] / q[a]
                used[group, 0] = times + 1
                used[group, 1] += 1 / q[a]
    return begun


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def take_groups(
    codes: Any,
    counts: Any,
    groups: Any,
    firsts: Any,
    lasts: Any,
    codes_at: Any,
    rows: Any,
    places: Any,
    starts: Any,
    strides: Any,
    used: Any,
    number: Any,
    few: Any,
    few_counts: Any,
) -> None:
    """Count the groups of each target, list the weights and counts of the first few, and make them unused again."""
    for run in range(firsts.size):
        at = codes_at[run]
        for c in range(firsts[run], lasts[run]):
            here = at
            at += strides.size
            group = groups[c]
            if used[group, 0] == 0:
                continue
            a = _target(codes, here, places, starts, strides)
            if a >= 0:
                if number[a] < few.shape[1]:
                    few[a, number[a]] = used[group, 1]
                    few_counts[a, number[a]] = counts[c]
                number[a] += 1
                used[group, 0] = 0
                used[group, 1] = 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def forget_groups(first_used: Any, used: Any) -> None:
    """Make some groups unused again."""
    for group in first_used:
        used[group, 0] = 0
        used[group, 1] = 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def hide_empty(valid: Any, variance: Any, k: Any, q: Any) -> None:
    """Where nothing is listed there is at least one group, which noise made zero; what is not valid is no sum."""
    for a in range(k.size):
        if not valid[a]:
            q[a] = 0.0
        elif k[a] == 0:
            k[a], q[a] = 1, variance


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_hidden(begun: Any, k: Any, q: Any) -> None:
    """Count a sum of one cell that is not the first as two cells, of twice the variance."""
    for a in range(k.size):
        if begun[a] and k[a] == 1:
            k[a] = 2
            q[a] *= 2
        begun[a] |= q[a] > 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def drop_repeats(table: Any, marks: Any, q: Any) -> None:
    """Put the marks of targets with q > 0 into a hash table, and set q to zero where one is already there."""
    mask = np.uint64(table.size - 1)
    for a in range(marks.size):
        if q[a] <= 0:
            continue
        key = mixed(np.uint64(a) ^ marks[a]) | np.uint64(1)
        at = key & mask
        while table[at] != 0 and table[at] != key:
            at = (at + np.uint64(1)) & mask
        if table[at] == key:
            q[a] = 0
        else:
            table[at] = key


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def root(parents: Any, node: Any) -> Any:
    """The first of the nodes that are joined with this one; the path to it is shortened."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def join_same(parents: Any, cells: Any, others: Any) -> None:
    """Join cells that are the same one."""
    for c in range(cells.size):
        one, two = root(parents, cells[c]), root(parents, others[c])
        parents[max(one, two)] = min(one, two)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def join_only_children(
    parents: Any, children: Any, below: Any, child_values: Any, values: Any, first: Any
) -> None:
    """Join a cell with the cell below it where that is the only visible one and has the same value.

    ``below[c]`` is the cell above child c, numbered from ``first`` on; negative where it is not visible.
    """
    count = np.zeros(values.size, dtype=np.int32)
    for c in range(below.size):
        if below[c] >= 0:
            count[below[c]] += 1
    for c in range(below.size):
        above = below[c]
        if above >= 0 and count[above] == 1 and values[above] == child_values[c]:
            one, two = root(parents, first + above), root(parents, children + c)
            parents[max(one, two)] = min(one, two)


# columns of the running sums
_T, _S, _Q, _K, _W, _SW, _C, _BEST, _BT, _BS, _BK = range(11)


@dataclass(frozen=True, eq=False)
class Averages:
    """The three estimates of each target, with their variances and the numbers of representations and cells."""

    estimates: Floats  # (method, target)
    variances: Floats  # (method, target)
    t: Integers  # (method, target): representations in use
    k: Integers  # (method, target): cells in use
    weights: Floats  # (target): the sum of the weights of WEIGHTED; zero where another method is better


class Running:
    """The sums behind the averages of each target; the riskiest prefix is stored when it is found."""

    def __init__(self, targets: int) -> None:
        self.sums = np.zeros((targets, 11))
        self.sums[:, _BEST] = np.inf

    def add(self, s: Integers, k: Integers, q: Floats, shared: Floats, weighted: Floats) -> None:
        """One more representation of the targets where q > 0; those of the fewest cells first.

        ``shared`` and ``weighted`` are what it adds to C and C' with the representations before it.
        """
        _add(self.sums, s, k, q, shared, weighted)

    def averages(self, targets: Integers) -> Averages:
        """The averages of some targets."""
        sums = self.sums[targets].T
        t, best, weight = sums[_T], sums[_BT], sums[_W]
        estimates = np.stack([sums[_S] / t, sums[_BS] / best, sums[_SW] / weight])
        variances = np.stack([sums[_Q] / t**2, sums[_BEST], (weight + sums[_C]) / weight**2])
        used, cells = np.stack([t, best, t]), np.stack([sums[_K], sums[_BK], sums[_K]])
        weights = _take_the_best(estimates, variances, used, cells, weight.copy())
        return Averages(estimates, variances, used.astype(np.int64), cells.astype(np.int64), weights)


def _take_the_best(estimates: Floats, variances: Floats, t: Floats, k: Floats, weights: Floats) -> Floats:
    """Weights are best for independent noise; where shared noise makes an equal-weight mean better, it is used.

    Returns the weights, zero where another method is used.
    """
    for method in (Method.MEAN, Method.RISKIEST):
        better = variances[method] < variances[Method.WEIGHTED] * (1 - 1e-12)
        for array in (estimates, variances, t, k):
            array[Method.WEIGHTED, better] = array[method, better]
        weights[better] = 0.0
    return weights


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add(sums: Any, s: Any, k: Any, q: Any, shared: Any, weighted: Any) -> None:
    for a in range(s.size):
        if q[a] <= 0:
            continue
        row = sums[a]
        row[_T] += 1
        row[_S] += s[a]
        row[_Q] += q[a] + shared[a]
        row[_K] += k[a]
        row[_W] += 1 / q[a]
        row[_SW] += s[a] / q[a]
        row[_C] += weighted[a]
        ratio = row[_Q] / row[_T] ** 2
        if ratio <= row[_BEST]:
            row[_BEST] = ratio
            row[_BT] = row[_T]
            row[_BS] = row[_S]
            row[_BK] = row[_K]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def take_representation(
    counts: Any,
    groups: Any,
    runs: Any,
    targets: Any,
    measured: Any,
    used: Any,
    begun: Any,
    so_far: Any,
    modes: Any,
) -> Any:
    """Add a measured representation to what is known of the targets; returns how many groups are in use.

    ``measured`` has s, n, k, q and marks, and room for what it shares with earlier ones; ``so_far`` the running sums,
    which targets have records, their counts, the marks and the targets seen. ``modes``: whether the counts are known,
    whether a zero is empty, and whether a further sum of one cell hides another cell.
    """
    firsts, lasts, rows = runs
    s, n, k, q, marks, shared, weighted = measured
    sums, known, counted, table, begun_targets = so_far
    informed, zeros_are_empty, hidden = modes
    for a in range(q.size):
        if q[a] > 0:
            if informed:
                counted[a] = n[a]
            if informed or not zeros_are_empty or s[a] != 0:
                known[a] = True
        shared[a], weighted[a] = 0.0, 0.0
    drop_repeats(table, marks, q)
    if hidden:
        count_hidden(begun_targets, k, q)
    begun = add_shared(
        counts, groups, firsts, lasts, rows, targets, q, used[0], used[1], begun, shared, weighted
    )
    _add(sums, s, k, q, shared, weighted)
    return begun


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_representation(
    cells: Any,
    laid: Any,
    targets: Any,
    valid: Any,
    variance: Any,
    measured: Any,
    used: Any,
    begun: Any,
    so_far: Any,
    modes: Any,
) -> Any:
    """Measure one representation of the targets and take it: ``add_cells``, ``hide_empty``, ``take_representation``."""
    codes, values, counts, mixed_group, groups = cells
    firsts, lasts, codes_at, rows, places, starts, strides = laid
    s, n, k, q, marks, _, _ = measured
    for a in range(q.size):
        s[a], n[a], k[a], q[a], marks[a] = 0, 0, 0, 0.0, 0
    add_cells(
        codes, values, counts, mixed_group, firsts, lasts, codes_at, rows, places, starts, strides,
        targets, modes[0], s, n, k, q, marks,
    )  # fmt: skip
    if not modes[0]:
        hide_empty(valid, variance, k, q)
    runs = firsts, lasts, rows
    return take_representation(counts, groups, runs, targets, measured, used, begun, so_far, modes)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def few_recovered(number: Any, few: Any, few_counts: Any, laws: Any, most: Any, chance: Any) -> None:
    """Pr[abs(sum of c_j e_j) < 1/2] by enumeration, for targets of few groups; a tie counts half.

    ``few`` has the coefficients c_j of each target's groups; ``laws[n]`` has the probabilities of the changes -R .. R
    of a count n, the last row for all larger counts. Targets of more than ``most`` combinations are left as they are.
    """
    last, values = laws.shape[0] - 1, laws.shape[1]
    reach = values // 2
    sums, chances = np.empty((2, most)), np.empty((2, most))
    for a in range(number.size):
        if number[a] == 0 or number[a] > few.shape[1]:
            continue
        combinations = 1
        for j in range(number[a]):
            combinations *= int(np.count_nonzero(laws[min(few_counts[a, j], last)]))
        if combinations > most:
            continue
        size, side = 1, 0
        sums[0, 0], chances[0, 0] = 0.0, 1.0
        for j in range(number[a]):
            row = min(few_counts[a, j], last)
            filled = 0
            for v in range(values):
                if laws[row, v] > 0:
                    for i in range(size):
                        sums[1 - side, filled] = sums[side, i] + few[a, j] * (v - reach)
                        chances[1 - side, filled] = chances[side, i] * laws[row, v]
                        filled += 1
            size, side = filled, 1 - side
        found = 0.0
        for i in range(size):
            away = abs(sums[side, i]) - 0.5
            found += chances[side, i] * (1.0 if away < -1e-9 else 0.5 if away < 1e-9 else 0.0)
        chance[a] = found


def successes(variances: Floats) -> Floats:
    """Pr[abs(noise) < 1/2] = erf(1/2 / sqrt(2 Var)), the noise of an average taken as normal."""
    found: Floats = special.erf(0.5 / np.sqrt(2 * np.maximum(variances, 1e-300)))
    return found
