"""What linear combinations of answered tables can know of a count: a lower bound of their variance.

The answers are y = A x + e: x the counts of the atoms (combinations of leaves), a row of A a cell of an answered table,
its filter included, e independent noise of variance V. The best unbiased linear estimate of a count t'x (Aitken 1935)
has the variance min{V w'w: A'w = t} = max_u V (u't)^2 / |A u|^2, so that **every** vector u gives a lower bound. A
table whose filter is a conjunction is a Kronecker product of rows M_v of each variable; with u a product of u_v,
|A u|^2 is the sum over tables of prod_v |M_v u_v|^2: cheap, and each answer only adds to it.

Of a variable, u_v is one of some *rungs*. Rung 0 is the even weight of all leaves. Rung c is the contrast at depth c:
even weight on a node less even weight on its siblings, which no table above that depth sees. The bound of a target is
the largest of one combination of rungs C, (u_C't)^2 / I_C, and of all of them together, sum_C (u_C't)^2 / J_C, where J
adds the absolute products between rungs (Gershgorin's bound of their matrix). The second is exact for a full table of
evenly divided codes. Sums are stored for every C, as the largest over all nodes of its depths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from discreet.maths.attacks.averaging import contour, successes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

FEWEST = 4  # people: fewer make at most 7 groups, whose answers have at most 2.7/V of information, whatever is asked
DENSEST = 4_000_000  # rows x leaves of groups whose products between rungs are computed
CLOSE = 1e-12
ROUNDED = 1e-9  # relative: more than the rounding errors of a probability and its inverse
TINY = 1e-280  # in the place of no information
LARGEST = 1e100  # a variance above this is infinite


@dataclass(frozen=True, eq=False)
class Ladder:
    """The codes of a variable: the node of each leaf at every depth, and how many records each leaf has."""

    levels: tuple[
        Integers, ...
    ]  # depth -> (leaf -> node); one node at depth 0; a leaf that ends above is its own node
    sizes: Floats  # leaf -> published number of records, zero where a code is empty

    @cached_property
    def weights(self) -> Floats:
        """Leaf -> even weight: each node divides its weight evenly among the nodes below it that are not empty."""
        inside = self.sizes > 0 if (self.sizes > 0).any() else np.ones(len(self.sizes), dtype=bool)
        weights = inside.astype(np.float64)
        for above, below in zip(self.levels, self.levels[1:], strict=False):
            weights[inside] /= _children(above[inside], below[inside])
        return weights

    @cached_property
    def shares(self) -> Floats:
        """Depth -> the share of all records that the node of a record typically has (geometric mean)."""
        total = max(float(self.sizes.sum()), 1.0)
        counts = (_added(nodes, self.sizes) / total for nodes in self.levels)
        return np.array([math.exp(float((some * np.log(some)).sum())) for some in (c[c > 0] for c in counts)])

    @cached_property
    def nodes(self) -> tuple[Floats, ...]:
        """Depth -> (leaf -> weight of its node)."""
        return tuple(_added(level, self.weights)[level] for level in self.levels)

    @cached_property
    def rests(self) -> tuple[Floats, ...]:
        """Depth -> (leaf -> weight of the siblings of its node), zero where there are none."""
        pairs = zip(self.nodes, self.nodes[1:], strict=False)
        below = (np.where(above - node > CLOSE * above, above - node, 0.0) for above, node in pairs)
        return (np.zeros(len(self.weights)), *below)

    @cached_property
    def far(self) -> tuple[int, ...]:
        """The depths whose nodes are also contrasted with all others: those whose parents are not all."""
        return tuple(range(2, len(self.levels)))

    @property
    def rungs(self) -> int:
        """The even weight, the contrasts with siblings, and those with all others."""
        return len(self.levels) + len(self.far)

    @cached_property
    def floors(self) -> Floats:
        """(depth of a target, rung) -> the least u't; zero where a node has no such contrast."""
        used = self.weights > 0
        found = np.zeros((len(self.levels), self.rungs))
        for target, node in enumerate(self.nodes):
            for rung, above in enumerate(self.nodes[: target + 1]):
                if rung in (0, target) or bool((self.rests[rung][used] > 0).all()):
                    found[target, rung] = float((node[used] / above[used]).min())
            for rung, depth in enumerate(self.far, start=len(self.levels)):
                if depth <= target:
                    found[target, rung] = float((node[used] / self.nodes[depth][used]).min())
        return found


def _added(places: Integers, weights: Floats) -> Floats:
    """Place -> sum of its weights."""
    return np.bincount(places, weights).astype(np.float64)


def _inverse(weights: Floats) -> Floats:
    """1 / w, and 0 where there is no weight."""
    return np.divide(1.0, weights, out=np.zeros(len(weights)), where=weights > 0)


def _children(above: Integers, below: Integers) -> Floats:
    """Leaf -> the number of nodes below the node that it is in."""
    pairs = np.unique(np.stack([above, below]), axis=1)
    return np.bincount(pairs[0]).astype(np.float64)[above]


@dataclass(frozen=True, eq=False)
class Seen:
    """What the rows of one variable see of each rung, at most over all nodes."""

    plain: Floats  # |M u|^2
    bounded: Floats  # with the absolute products between rungs
    inside: float  # the weight of the leaves that are shown


def seen(ladder: Ladder, depth: int, inside: Mask) -> Seen:
    """What an axis at a depth sees where only some leaves pass; a variable that is only filtered has depth 0."""
    weights, level = np.where(inside, ladder.weights, 0.0), ladder.levels[depth]
    rows = _added(level, weights)
    first = np.unique(level, return_index=True)[1]  # a leaf of each row
    row = rows[level]  # leaf -> weight of its row
    # depth -> (leaf -> sum of squares of the rows in its node), and the weight of its node that is shown
    below = [_added(one[first], row[first] ** 2)[one] for one in ladder.levels[: depth + 1]]
    masses = [_added(one, weights)[one] for one in ladder.levels]
    count = len(ladder.levels)
    matrix = np.zeros((count, count, len(weights)))  # products of rungs, for the nodes above each leaf
    matrix[0, 0] = below[0]
    values = [row]  # of each rung, in the row that contains the leaf
    for rung in range(1, count):
        node, rest = _inverse(ladder.nodes[rung]), _inverse(ladder.rests[rung])
        has = rest > 0
        if rung <= depth:
            others = below[rung - 1] - below[rung]
            matrix[rung, rung] = (below[rung] * node**2 + others * rest**2) * has
            tilt = (below[rung] * node - others * rest) * has
            values.append(row * node * has)
            products = [tilt * _inverse(ladder.nodes[other]) for other in range(rung)]
        else:
            values.append((masses[rung] * node - (masses[rung - 1] - masses[rung]) * rest) * has)
            matrix[rung, rung] = values[rung] ** 2
            products = [values[rung] * values[other] for other in range(rung)]
        for other, product in enumerate(products):
            matrix[rung, other] = matrix[other, rung] = product
    far = []
    for rung in ladder.far:
        node, rest = _inverse(ladder.nodes[rung]), _inverse(1 - ladder.nodes[rung])
        if rung <= depth:
            far.append(below[rung] * node**2 + (below[0] - below[rung]) * rest**2)
        else:
            value = masses[rung] * node - (row - masses[rung]) * rest
            far.append(value**2 + (below[0] - row**2) * rest**2)
    return _largest(ladder, matrix, far, float(weights.sum()))


def seen_groups(ladder: Ladder, rows: Integers) -> Seen:
    """What groups of leaves see (leaf -> group, -1 for none)."""
    shown = rows >= 0
    number = int(rows.max(initial=0)) + 1
    if number * len(rows) > DENSEST:
        return _seen_roughly(ladder, rows)
    masses = []  # depth -> (row, leaf): what the node of the leaf has in the row
    for level in ladder.levels:
        size = int(level.max()) + 1
        flat = np.bincount(rows[shown] * size + level[shown], ladder.weights[shown], minlength=number * size)
        masses.append(flat.reshape(number, size)[:, level])
    values = np.stack(masses)
    for rung in range(1, len(masses)):
        node, rest = _inverse(ladder.nodes[rung]), _inverse(ladder.rests[rung])
        values[rung] = (masses[rung] * node - (masses[rung - 1] - masses[rung]) * rest) * (rest > 0)
    far = []
    for rung in ladder.far:
        node, rest = _inverse(ladder.nodes[rung]), _inverse(1 - ladder.nodes[rung])
        far.append(((masses[rung] * node - (masses[0] - masses[rung]) * rest) ** 2).sum(axis=0))
    matrix = np.einsum("arl,brl->abl", values, values)
    return _largest(ladder, matrix, far, float(ladder.weights[shown].sum()))


def _seen_roughly(ladder: Ladder, rows: Integers) -> Seen:
    """An upper bound for many groups of many leaves: a contrast is a difference of two distributions."""
    shown = rows >= 0
    masses = _added(rows[shown], ladder.weights[shown])
    return at_most(ladder, float((masses**2).sum()), 2.0, float(masses.sum()))


def at_most(ladder: Ladder, even: float, contrast: float, inside: float = 1.0) -> Seen:
    """Rows of which only upper bounds are known, of the even weight and of any contrast."""
    plain = np.array([even, *(contrast for _ in range(ladder.rungs - 1))])
    return Seen(
        plain, np.full(ladder.rungs, ladder.rungs * max(1.0, contrast) / ladder.floors[-1, 0]), inside
    )


def _largest(ladder: Ladder, matrix: Floats, far: Sequence[Floats], inside: float) -> Seen:
    """The largest over all nodes; contrasts with all others are used one at a time, and have no products."""
    used = ladder.weights > 0
    single = [float(one[used].max()) for one in far]
    plain, bounded = [], []
    for rung, node in enumerate(ladder.nodes):
        products = np.abs(matrix[rung][:, used])
        scales = np.stack([node[used] / above[used] for above in ladder.nodes])
        plain.append(float(matrix[rung, rung, used].max()))
        bounded.append(float((products * scales).sum(axis=0).max()))
    return Seen(np.array([*plain, *single]), np.array([*bounded, *single]), inside)


def seen_of_parts(weights: Floats, parts: Integers, rows: Integers) -> float:
    """What rows see of the contrasts of any part of a partition against all others, at most."""
    shown = rows >= 0
    if not shown.any():
        return 0.0
    number, sizes = int(parts.max()) + 1, _added(parts, weights)
    codes, places = np.unique(rows[shown], return_inverse=True)
    flat = np.bincount(places * number + parts[shown], weights[shown], minlength=len(codes) * number)
    masses = flat.reshape(len(codes), number)
    has = (sizes > CLOSE) & (sizes < 1 - CLOSE)
    if not has.any():
        return 0.0
    rest = masses.sum(axis=1, keepdims=True) - masses[:, has]
    values = masses[:, has] / sizes[has] - rest / (1 - sizes[has])
    return float((values**2).sum(axis=0).max())


@dataclass(frozen=True, eq=False)
class Side:
    """One variable of a table: what each depth of it sees of each rung; the last rung may be that of a user's sets."""

    name: str
    plain: Floats  # (depth, rung)
    bounded: Floats  # (depth, rung)
    inside: Floats  # depth -> weight that is shown
    floors: Floats  # (target, rung): u't
    sums: Floats  # (target, rung): u't of the rungs that are used together
    shares: Floats  # rung -> typical share of the records
    targets: Integers  # target -> its rung

    @property
    def rungs(self) -> int:
        """The number of rungs."""
        return len(self.shares)

    @cached_property
    def filled(self) -> tuple[Floats, Floats]:
        """(depth, rung), plain and bounded, with the weight that is shown in the place of the even weight's."""
        return (
            np.column_stack([self.inside, self.plain[:, 1:]]),
            np.column_stack([self.inside, self.bounded[:, 1:]]),
        )

    @cached_property
    def squares(self) -> tuple[Floats, Floats]:
        """(target, rung, 1): squares of u't, and (target, rung): those of the rungs that are used together."""
        return (self.floors**2)[:, :, None], self.sums**2


def side(name: str, ladder: Ladder, rows: Sequence[Seen] = ()) -> Side:
    """A variable whose depths see these."""
    levels = len(ladder.levels)
    return Side(
        name,
        np.array([one.plain for one in rows]),
        np.array([one.bounded for one in rows]),
        np.array([one.inside for one in rows]),
        ladder.floors,
        np.where(np.arange(ladder.rungs) < levels, ladder.floors, 0.0),
        np.concatenate([ladder.shares, ladder.shares[list(ladder.far)]]),
        np.arange(levels),
    )


def with_sets(one: Side, sees: Sequence[float], share: float) -> Side:
    """With a further rung for sets that a user defined, and what each depth sees of it."""
    column = np.array(sees)[:, None]
    floors = np.pad(one.floors, ((0, 1), (0, 1)))
    sums = np.pad(one.sums, ((0, 1), (0, 1)))
    floors[-1, -1] = sums[-1, -1] = 1.0
    return Side(
        one.name,
        np.hstack([one.plain, column]),
        np.hstack([one.bounded, column]),
        one.inside,
        floors,
        sums,
        np.append(one.shares, share),
        np.append(one.targets, one.rungs),
    )


def contracted(tensor: Floats, matrices: Sequence[Floats]) -> Floats:
    """Sum over each index of a tensor, times a matrix of each."""
    for matrix in matrices:  # each takes the first index away, and adds that of its columns at the end
        tensor = tensor.reshape(len(matrix), -1).T @ matrix
    return tensor.reshape([matrix.shape[1] for matrix in matrices])


def typical(shares: Sequence[Floats], records: float) -> Floats:
    """The typical number of people of a count, for each combination of rungs or of targets."""
    return np.asarray(reduce(np.multiply.outer, shares, np.array(float(records))), dtype=np.float64)


def information(sides: Sequence[Side], new: Floats, records: float) -> tuple[Floats, Floats]:
    """What some cross-tabulations (1 in ``new``, by depth of each variable) add to I and J of every combination.

    A count of n people is in at most n cells that are not empty: weights h of its cells are h + (inside - h) / n.
    """
    rare = 1 / np.maximum(typical([one.shares for one in sides], records), FEWEST)
    often = 1 - rare
    plain = contracted(new, [one.plain for one in sides]) * often
    bounded = contracted(new, [one.bounded for one in sides]) * often
    plain += contracted(new, [one.filled[0] for one in sides]) * rare
    bounded += contracted(new, [one.filled[1] for one in sides]) * rare
    return plain, bounded


def least_variances(plain: Floats, bounded: Floats, sides: Sequence[Side]) -> Floats:
    """The least variance of linear estimates of each target, in units of V; infinite where there is no estimate.

    The first index may number several states of knowledge, where the sums have one index more than there are sides.
    """
    one = _inverse_of(plain, sides)
    for along in sides:  # each takes the first index away, and adds that of its targets at the end
        targets, rungs = along.floors.shape
        rest = one.shape[1:]
        one = (along.squares[0] * one.reshape(1, rungs, -1)).max(axis=1).T.reshape(*rest, targets)
    found = np.maximum(one, at_least(bounded, sides))
    return np.where(found > LARGEST, np.inf, found)


def at_least(bounded: Floats, sides: Sequence[Side]) -> Floats:
    """A lower bound of ``least_variances`` that needs J only."""
    every = _inverse_of(bounded, sides)
    for along in sides:
        targets, rungs = along.floors.shape
        rest = every.shape[1:]
        every = (along.squares[1] @ every.reshape(rungs, -1)).T.reshape(*rest, targets)
    return every


def _inverse_of(tensor: Floats, sides: Sequence[Side]) -> Floats:
    """1 / x, states of knowledge last."""
    found = 1 / (tensor + TINY)
    return np.moveaxis(found, 0, -1) if tensor.ndim > len(sides) else found


def rarely_exact(chance: float, variance: float) -> float:
    """The least variance, in units of the noise's, with which a count is found exactly with at most this probability.

    It is rounded up by more than the errors of ``exact``, whose probability from here on is never larger.
    """
    return contour(chance) / variance * (1 + ROUNDED) if chance > 0 and variance > 0 else math.inf


def exact(variances: Floats, variance: float) -> Floats:
    """The probability that a count is found exactly by an estimate of these variances, in units of the noise's."""
    finite = np.isfinite(variances)
    return np.where(finite, successes(np.where(finite, variances, 1.0) * variance), 0.0)
