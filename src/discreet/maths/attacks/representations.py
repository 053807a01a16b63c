"""The sums of published cells that represent the cells of a cross-tabulation, added up one refinement at a time.

The cells of a refinement are listed once for all its targets: those whose codes are in its cuts, run by run, a run
being what one piece contributes. The axes that a target does not have are added up completely, so that only the codes
along its own axes are looked at. Groups that occur once in all lists have no covariance and are passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.attacks.averaging import Floats, Integers, add_to_averages

Places = NDArray[np.int32]
Mask = NDArray[np.bool_]
Marks = NDArray[np.uint64]

BLOCK = 4096  # cells whose targets are in the nearest cache while they are found


class Cells(NamedTuple):
    """All published cells of a universe."""

    values: Integers
    counts: Integers
    marks: Marks  # cell -> the mixed number of its group
    groups: Places  # cell -> the group that its covariances are noted for, -1 where it has none


class Runs(NamedTuple):
    """The cells of all refinements, run by run."""

    cells: Places
    firsts: Integers  # run -> where its cells begin; the last entry is the number of all
    runs_at: Integers  # refinement -> its first run; the last entry is the number of all
    codes: NDArray[np.integer]  # the codes of a refinement's cells along its first axis, along its second ..
    codes_at: Integers  # refinement -> where its codes begin
    row_of: Integers  # run -> its row of variances
    rows: Floats  # (row, count) -> variance of the noise of a cell with this count, the last for all larger ones


class Axes(NamedTuple):
    """The axes of a cross-tabulation whose cells are targets, and where its refinements have them."""

    refinements: Integers  # the number of each of its refinements
    columns: Integers  # (refinement, axis) -> place of the axis among those of the refinement
    places_at: Integers  # (refinement, axis) -> where the places of its codes begin
    divided_at: Integers  # (refinement, axis) -> where it is noted which places its cut divides
    sizes: Integers  # axis -> places
    strides: Integers  # axis -> weight of a place in the number of the target
    places: Places  # code -> place along the axis, -1 for none
    divided: Mask  # place -> whether the cut divides it


class Measured(NamedTuple):
    """One representation of each target."""

    s: Integers  # the sum of published values ..
    n: Integers  # .. and of the counts behind them
    k: Integers  # the noisy cells: those listed where empty cells are not listed, otherwise all
    q: Floats  # the variance of the sum, zero where this is no representation
    marks: Marks  # equal where the same groups are added up
    shared: Floats  # covariances with earlier representations ..
    weighted: Floats  # .. and those of sums weighted by 1/q
    weights: Floats  # 1/q, zero where this is no representation
    valid: Mask  # whether the refinement's cuts divide the target


class SoFar(NamedTuple):
    """What is known of each target from the representations so far."""

    sums: Floats  # running sums of the averages
    known: Mask  # whether it has records
    counts: Integers
    seen: Marks  # (target, slot): the marks of its representations
    begun: Mask  # whether it has a representation


class Used(NamedTuple):
    """The groups in the sums of one cross-tabulation: a group lies in one target, so that one array serves all."""

    times: Floats  # (group, 2): how often it is in sums, and with which weights 1/q
    order: Places  # the groups in the order of their first use


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


def repeated_groups(groups: Places, listed: Places) -> Places:
    """Cell -> the number of its group among those that are listed more than once, -1 for others."""
    number = np.zeros(int(groups.max(initial=0)) + 1, dtype=np.int32)
    _count_groups(groups, listed, number)
    is_repeated = number > 1
    number[is_repeated] = np.arange(int(is_repeated.sum()), dtype=np.int32)
    number[~is_repeated] = -1
    return number[groups]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _count_groups(groups: Any, listed: Any, number: Any) -> None:
    for c in listed:
        number[groups[c]] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def find_targets(runs: Any, axes: Any, r: Any, targets: Any) -> None:
    """The target of each cell of the r-th refinement: the places of its codes times the strides; -1 for none."""
    one = axes.refinements[r]
    begin, end = runs.firsts[runs.runs_at[one]], runs.firsts[runs.runs_at[one + 1]]
    size = end - begin
    for first in range(0, size, BLOCK):
        here = targets[first : min(first + BLOCK, size)]
        here[:] = 0
        for j in range(axes.strides.size):
            at = runs.codes_at[one] + axes.columns[r, j] * size + first
            codes = runs.codes[at : at + here.size]
            places, stride = axes.places[axes.places_at[r, j] :], axes.strides[j]
            for i in range(here.size):
                place, number = places[codes[i]], here[i]
                here[i] = -1 if place < 0 or number < 0 else number + place * stride


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_cells(cells: Any, runs: Any, one: Any, targets: Any, informed: Any, measured: Any) -> None:
    """Add up the cells of a refinement by target: values, counts, number, variances, and a hash of their groups.

    Counts that are not known are not added up.
    """
    s, n, k, q, marks, _, _, _, _ = measured
    for a in range(q.size):
        s[a], n[a], k[a], q[a], marks[a] = 0, 0, 0, 0.0, 0
    last, begin = runs.rows.shape[1] - 1, runs.firsts[runs.runs_at[one]]
    for run in range(runs.runs_at[one], runs.runs_at[one + 1]):
        first, end, row = runs.firsts[run], runs.firsts[run + 1], runs.rows[runs.row_of[run]]
        listed, here, variance = runs.cells[first:end], targets[first - begin : end - begin], row[0]
        for i in range(listed.size):
            if here[i] >= 0:
                to, c = np.uint64(here[i]), np.uint64(listed[i])
                s[to] += cells.values[c]
                k[to] += 1
                marks[to] += cells.marks[c]
                if informed:
                    n[to] += cells.counts[c]
                q[to] += row[min(cells.counts[c], last)] if last else variance


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_shared(cells: Any, runs: Any, one: Any, targets: Any, measured: Any, used: Any, begun: Any) -> Any:
    """Add the covariance terms of each cell with the cells of the same group in earlier representations.

    ``begun`` groups are in use before; returns how many are in use afterwards.
    """
    q, shared, weighted, weights, times = (
        measured.q, measured.shared, measured.weighted, measured.weights, used.times,
    )  # fmt: skip
    for a in range(q.size):
        shared[a], weighted[a], weights[a] = 0.0, 0.0, 1 / q[a] if q[a] > 0 else 0.0
    last, begin = runs.rows.shape[1] - 1, runs.firsts[runs.runs_at[one]]
    for run in range(runs.runs_at[one], runs.runs_at[one + 1]):
        first, end, row = runs.firsts[run], runs.firsts[run + 1], runs.rows[runs.row_of[run]]
        listed, here = runs.cells[first:end], targets[first - begin : end - begin]
        for i in range(listed.size):
            c = np.uint64(listed[i])
            if cells.groups[c] >= 0 and here[i] >= 0 and weights[here[i]] > 0:
                to, group = np.uint64(here[i]), np.uint64(cells.groups[c])
                if times[group, 0] == 0:
                    used.order[begun] = group
                    begun += 1
                else:
                    variance = row[min(cells.counts[c], last)] if last else row[0]
                    shared[to] += 2 * variance * times[group, 0]
                    weighted[to] += 2 * variance * times[group, 1] / q[to]
                times[group, 0] += 1
                times[group, 1] += weights[to]
    return begun


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def take_groups(
    cells: Any, runs: Any, axes: Any, targets: Any, times: Any, number: Any, few: Any, few_counts: Any
) -> None:
    """Count the groups of each target, list the weights and counts of the first few, and make them unused again."""
    for r in range(axes.refinements.size):
        one = axes.refinements[r]
        find_targets(runs, axes, r, targets)
        begin, end = runs.firsts[runs.runs_at[one]], runs.firsts[runs.runs_at[one + 1]]
        for i in range(begin, end):
            c, a = runs.cells[i], targets[i - begin]
            group = cells.groups[c]
            if a >= 0 and times[group, 0] > 0:
                if number[a] < few.shape[1]:
                    few[a, number[a]] = times[group, 1]
                    few_counts[a, number[a]] = cells.counts[c]
                number[a] += 1
                times[group, 0] = 0
                times[group, 1] = 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def forget_groups(first_used: Any, times: Any) -> None:
    """Make some groups unused again."""
    for group in first_used:
        times[group, 0] = 0
        times[group, 1] = 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mark_divided(axes: Any, r: Any, valid: Any) -> None:
    """Which targets the cuts of the r-th refinement divide along all axes."""
    valid[0], filled = True, 1
    for j in range(axes.sizes.size):
        size, at = axes.sizes[j], axes.divided_at[r, j]
        for x in range(filled - 1, -1, -1):  # from the end: what is read has not been overwritten
            is_valid = valid[x]
            for y in range(size):
                valid[x * size + y] = is_valid and axes.divided[at + y]
        filled *= size


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
def drop_repeats(seen: Any, marks: Any, q: Any) -> None:
    """Put the marks of targets with q > 0 into their slots, and set q to zero where one is already there."""
    mask = np.uint64(seen.shape[1] - 1)
    for a in range(marks.size):
        if q[a] <= 0:
            continue
        key = mixed(marks[a]) | np.uint64(1)
        at = (key >> np.uint64(1)) & mask
        while seen[a, at] != 0 and seen[a, at] != key:
            at = (at + np.uint64(1)) & mask
        if seen[a, at] == key:
            q[a] = 0
        else:
            seen[a, at] = key


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def take_representation(
    cells: Any,
    runs: Any,
    one: Any,
    targets: Any,
    measured: Any,
    used: Any,
    begun: Any,
    so_far: Any,
    modes: Any,
) -> Any:
    """Add a measured representation to what is known of the targets; returns how many groups are in use.

    ``modes``: whether the counts are known, whether a zero is empty, and whether a further sum of one cell hides
    another cell.
    """
    s, n, k, q, marks, shared, weighted, _, _ = measured
    informed, zeros_are_empty, hidden = modes
    for a in range(q.size):
        if q[a] > 0:
            if informed:
                so_far.counts[a] = n[a]
            if informed or not zeros_are_empty or s[a] != 0:
                so_far.known[a] = True
    drop_repeats(so_far.seen, marks, q)
    if hidden:
        count_hidden(so_far.begun, k, q)
    begun = add_shared(cells, runs, one, targets, measured, used, begun)
    add_to_averages(so_far.sums, s, k, q, shared, weighted)
    return begun


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_representations(
    cells: Any,
    runs: Any,
    axes: Any,
    variance: Any,
    targets: Any,
    measured: Any,
    used: Any,
    so_far: Any,
    modes: Any,
) -> Any:
    """Measure and take all representations of the targets, one after the other; returns how many groups are in use."""
    begun = 0
    for r in range(axes.refinements.size):
        one = axes.refinements[r]
        find_targets(runs, axes, r, targets)
        add_cells(cells, runs, one, targets, modes[0], measured)
        if not modes[0]:
            mark_divided(axes, r, measured.valid)
            hide_empty(measured.valid, variance, measured.k, measured.q)
        begun = take_representation(cells, runs, one, targets, measured, used, begun, so_far, modes)
    return begun
