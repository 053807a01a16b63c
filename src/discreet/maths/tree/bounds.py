"""Which group sums an area can have, when its parts have bounds and some totals are exact.

The possible vectors s of group sums of an area are {s: p(B) <= s(B) <= b(B) for every set B of groups}, s(B) the sum
over B: a generalised polymatroid. An area's is the sum of its children's (p and b add up), and a known total T gives

    b'(B) = min(b(B), T - p(V - B)),  p'(B) = max(p(B), T - b(V - B))

(Frank and Tardos 1988: sums and plane sections of generalised polymatroids are such again, and a whole vector of the
sum is a sum of whole vectors). So a vector within the parent's limits can always be divided among the children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import lazily

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")

Integers = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

UNBOUNDED = 1 << 40
MOST_GROUPS = 12  # whose 2^12 sets are listed where totals and bounds meet


def members(groups: int) -> Integers:
    """(set, group) -> 1 where the set contains the group."""
    return (np.arange(1 << groups)[:, None] >> np.arange(groups)[None, :]) & 1


def box(lower: Integers, upper: Integers) -> tuple[Integers, Integers]:
    """p and b of plain bounds; leading axes are areas."""
    inside = members(lower.shape[-1]).T
    return lower @ inside, upper @ inside


def with_total(p: Integers, b: Integers, total: Integers) -> tuple[Integers, Integers]:
    """p and b given the total of each area."""
    whole = np.asarray(total)[..., None]
    return np.maximum(p, whole - b[..., ::-1]), np.minimum(b, whole - p[..., ::-1])


def divided(near: Floats, p: Integers, b: Integers, parent: Integers | None) -> Integers:
    """Whole group sums (child, group) within the children's limits, nearest to ``near``, that sum to the parent's.

    A linear programme whose vertices are whole (intersection of two generalised polymatroids); each sum is its floor,
    plus a part that costs 1 - 2 f, plus more or minus some at cost 1 each: three unknowns, in this order.
    """
    n, groups = near.shape
    floor = np.floor(near + 1e-7)
    part = np.clip(near - floor, 0.0, 1.0).reshape(-1)
    size = n * groups
    inside = members(groups)[1:].astype(np.float64)
    cost = np.concatenate([1 - 2 * part, np.ones(2 * size)])
    limits = [(0, 1)] * size + [(0, None)] * (2 * size)
    row, column = np.nonzero(inside)
    rows, columns = [], []
    for c in range(n):
        rows.append(row + c * len(inside))
        columns.append(column + c * groups)
    r, q = np.concatenate(rows), np.concatenate(columns)
    one = np.ones(len(r))
    sets = sparse.coo_array(
        (np.concatenate([one, one, -one]), (np.tile(r, 3), np.concatenate([q, q + size, q + 2 * size]))),
        shape=(n * len(inside), 3 * size),
    ).tocsr()
    start = (floor @ inside.T).reshape(-1)
    high, low = b[:, 1:].reshape(-1) - start, p[:, 1:].reshape(-1) - start
    from_above = sets[high < UNBOUNDED // 2], high[high < UNBOUNDED // 2]
    equal, value = None, None
    if parent is not None:
        at = np.arange(size)
        equal = sparse.coo_array(
            (
                np.concatenate([np.ones(2 * size), -np.ones(size)]),
                (np.tile(at % groups, 3), np.concatenate([at, at + size, at + 2 * size])),
            ),
            shape=(groups, 3 * size),
        ).tocsr()
        value = parent - floor.sum(axis=0)
    from scipy.optimize import linprog  # noqa: PLC0415 (few programmes need it, and its import is slow)

    solved = linprog(
        cost,
        A_ub=sparse.vstack([from_above[0], -sets]),
        b_ub=np.concatenate([from_above[1], -low]),
        A_eq=equal,
        b_eq=value,
        bounds=limits,
        method="highs-ds",
    )
    if solved.x is None:
        raise ArithmeticError("group sums outside of what the children can have")
    moves = solved.x.reshape(3, n, groups)
    found: Integers = np.rint(floor + moves[0] + moves[1] - moves[2]).astype(np.int64)
    sums = found @ members(groups).T
    if (sums < p).any() or (sums > b).any() or (parent is not None and (found.sum(axis=0) != parent).any()):
        raise ArithmeticError("a linear programme without a whole solution")
    return found
