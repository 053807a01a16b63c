"""A question as the history guard sees it: what each variable shows at every depth, with filter and groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from discreet.maths.attacks.information import (
    Ladder,
    Seen,
    Side,
    at_most,
    seen,
    seen_groups,
    seen_of_parts,
    side,
    with_sets,
)
from discreet.programme.codelist import Breakdown, Codelist, breakdown
from discreet.programme.cube import Cube
from discreet.programme.filter import Comparison, Term
from discreet.serve.catalogue import ServedVariable
from discreet.serve.question import EVERY_CODE, Mask, comparisons
from discreet.serve.records import TableSource

Integers = NDArray[np.int64]
Block = tuple[
    str, tuple[slice, ...]
]  # names of variables, as JSON, and where their contrasts are in a tensor
MOST_BLOCKS = 10_000  # combinations of variables whose parts are cached
SET = "#"  # between the name of a variable and that of a user's sets of its codes


class Spaces:
    """The populations of a source, with the published sizes of all codes; each is looked up once; safe for threads."""

    def __init__(self, source: TableSource) -> None:
        self._source, self._lock = source, Lock()
        self._spaces: dict[tuple[str, str], Space] = {}

    def of(self, cube: Cube) -> Space:
        """The population that a table counts, without its filter."""
        key = (cube.unit, cube.count or "")
        with self._lock:
            return self._spaces.setdefault(key, Space(self._source, *key))

    def has(self, cube: Cube) -> bool:
        """Whether all that is known of a table of all records has been looked up."""
        space = self._spaces.get((cube.unit, cube.count or ""))
        return space is not None and space.has(cube)


class Space:
    """All records of a unit, or those of a 0/1 column: what is known of each variable."""

    def __init__(self, source: TableSource, unit: str, count: str) -> None:
        self._source, self._unit, self._count = source, unit, count
        self._ladders: dict[str, Ladder] = {}
        self._axes: dict[str, tuple[Seen, ...]] = {}
        self._sides: dict[str, Side] = {}

    @cached_property
    def total(self) -> int:
        """The published number of them."""
        return self._published(Cube("", self._unit, (), None, self._count or None)).get(0, 0)

    @property
    def records(self) -> int:
        """The same, but at least 1."""
        return max(1, self.total)

    def ladder(self, variable: str) -> Ladder:
        """The codes of a variable with the published number of records of each."""
        if variable not in self._ladders:
            self._ladders[variable] = self._ladder(self._source.catalogue.variables[variable])
        return self._ladders[variable]

    def level_name(self, variable: str, depth: int) -> str:
        """What a level of a variable is called, GEO.COUNTY; groups of a user and levels without a name are numbered."""
        known = self._source.catalogue.variables.get(variable)
        axes = () if known is None else known.breakdowns.values()
        deepest = max((axis.levels for axis in axes), key=len, default=())
        return deepest[depth - 1] if depth <= len(deepest) else f"{variable}:{depth}"

    def has(self, cube: Cube) -> bool:
        """Whether a table has no filter, and its axes and the number of records have been looked up."""
        is_known = "total" in vars(self) and all(axis.full_name in self._sides for axis in cube.axes)
        return is_known and cube.base is None

    def axis(self, axis: Breakdown) -> tuple[Seen, ...]:
        """What an axis without a filter sees at each depth."""
        if axis.full_name not in self._axes:
            ladder = self.ladder(axis.root)
            depths = range(axis.deepest + 1)
            every = np.ones(len(ladder.sizes), dtype=bool)
            self._axes[axis.full_name] = tuple(
                seen(ladder, depth, _told(axis, depth, every, ladder)) for depth in depths
            )
        return self._axes[axis.full_name]

    def side(self, axis: Breakdown) -> Side:
        """The variable of an axis without a filter."""
        if axis.full_name not in self._sides:
            self._sides[axis.full_name] = side(axis.variable, self.ladder(axis.variable), self.axis(axis))
        return self._sides[axis.full_name]

    def _ladder(self, variable: ServedVariable) -> Ladder:
        tree = variable.codelist
        every = [
            axis
            for axis in variable.breakdowns.values()
            if len(np.unique(axis.node_of_leaf)) == len(tree.leaves)
        ]
        axis = every[0] if every else breakdown(variable.name, EVERY_CODE, tree, tree.leaves)
        found = self._published(Cube("", self._unit, (axis,), None, self._count or None))
        sizes = np.array([found.get(node, 0) for node in axis.node_of_leaf.tolist()], dtype=np.float64)
        return Ladder(_levels(tree), sizes)

    def _published(self, cube: Cube) -> dict[int, int]:
        table = self._source.table(cube)
        return dict(zip(table.cells.tolist(), table.values.tolist(), strict=True))


def _levels(tree: Codelist) -> tuple[Integers, ...]:
    """Depth -> (leaf -> number of the node that it is in at this depth, or of the leaf itself where it ends above)."""
    chains = [tree.ancestors(leaf)[::-1] for leaf in tree.leaves]
    levels = [np.zeros(len(chains), dtype=np.int64)]
    for depth in range(tree.depth):
        nodes = np.array([chain[min(depth, len(chain) - 1)] for chain in chains])
        levels.append(np.unique(nodes, return_inverse=True)[1].astype(np.int64))
    return tuple(levels)


def _told(axis: Breakdown | None, depth: int, inside: Mask, ladder: Ladder) -> Mask:
    """Leaf -> whether the axis shows it at this depth in a group of its own.

    Where those of a node who pass the filter are all of its parent's, they are the same group with the same noise.
    """
    if axis is None or depth == 0:
        return inside
    found: Mask = inside & (axis.depths[axis.node_of_leaf] >= depth)
    node, above = ladder.levels[depth], ladder.levels[depth - 1]
    differs = np.bincount(node, inside)[node] < np.bincount(above, inside)[above]
    return found & differs


@dataclass(frozen=True, eq=False)
class Shown:
    """The variables of a table, and the published number of records of its population."""

    space: Space
    sides: tuple[Side, ...]  # by name
    names: tuple[
        str, ...
    ]  # side -> name of the sets that the user defined of its codes, empty where there are none
    order: tuple[int, ...]  # axis of the table -> side

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The parts of a tensor of the rungs of all sides."""
        return blocks_of(self.sides, self.names)

    @property
    def sets(self) -> list[str]:
        """The names of the parts with sets that the user defined."""
        return [name for name, _ in self.blocks if SET in name]


def blocks_of(sides: Sequence[Side], names: Sequence[str]) -> tuple[Block, ...]:
    """The parts of a tensor: of each variable nothing, the contrasts of its nodes, or that of a user's sets."""
    return _blocks(tuple((one.name, one.rungs, sets) for one, sets in zip(sides, names, strict=True)))


@lru_cache(maxsize=MOST_BLOCKS)
def _blocks(sides: tuple[tuple[str, int, str], ...]) -> tuple[Block, ...]:
    kinds = []
    for name, rungs, sets in sides:
        nodes = rungs - bool(sets)
        kind = [("", slice(0, 1)), (name, slice(1, nodes))]
        kinds.append([*kind, (f"{name}{SET}{sets}", slice(nodes, nodes + 1))] if sets else kind)
    return tuple(
        (f"[{', '.join([_quoted(name) for name, _ in chosen if name])}]", tuple([at for _, at in chosen]))
        for chosen in product(*kinds)
    )


@lru_cache(maxsize=MOST_BLOCKS)
def _quoted(name: str) -> str:
    return json.dumps(name)


def shown(cube: Cube, space: Space) -> Shown:
    """What a table shows: its axes, restricted by its filter, and the variables that are only in its filter."""
    masks, loose = filtered(cube)
    axes = {axis.root: axis for axis in cube.axes}
    variables = sorted({*axes, *masks, *loose})
    found = [_side(name, axes.get(name), masks.get(name), name in loose, space) for name in variables]
    order = tuple(variables.index(axis.root) for axis in cube.axes)
    return Shown(space, tuple(one for one, _ in found), tuple(name for _, name in found), order)


def filtered(cube: Cube) -> tuple[Mapping[str, Mask], frozenset[str]]:
    """The leaves of each variable that pass, where the filter joins its comparisons by ``and``; else its variables."""
    if cube.base is None:
        return {}, frozenset()
    terms: tuple[Term, ...] = (
        (cube.base.term,) if isinstance(cube.base.term, Comparison) else cube.base.term.terms
    )
    parts = [part for part in terms if isinstance(part, Comparison)]
    is_joined = isinstance(cube.base.term, Comparison) or cube.base.term.word == "and"
    if is_joined:  # what else it joins is bounded without knowing how
        others = (part for part in terms if not isinstance(part, Comparison))
        loose = frozenset(one.variable for part in others for one in comparisons(part))
        return {part.variable: part.lookup for part in parts if part.variable not in loose}, loose
    return {}, frozenset(part.variable for part in comparisons(cube.base.term))


def _side(
    name: str, axis: Breakdown | None, mask: Mask | None, is_loose: bool, space: Space
) -> tuple[Side, str]:
    ladder = space.ladder(name)
    if is_loose:
        return _bounded(name, axis, ladder, space), ""
    if mask is None and axis is not None and not axis.is_grouping:
        return space.side(axis), ""
    inside = np.ones(len(ladder.sizes), dtype=bool) if mask is None else mask
    rows = list(_rows(axis, ladder, inside))
    if axis is not None and axis.is_grouping:
        sees = [seen(ladder, 0, inside), seen_groups(ladder, rows[1])]
        parts = axis.node_of_leaf.astype(np.int64)
    else:
        sees = [seen(ladder, depth, one >= 0) for depth, one in enumerate(rows)]
        parts = inside.astype(np.int64)
    made = side(name, ladder, sees)
    if _is_node(ladder, parts):
        return made, ""
    weights = ladder.weights
    total = max(float(ladder.sizes.sum()), 1.0)
    share = float(np.bincount(parts, ladder.sizes)[1:].max() / total)
    digest = hashlib.blake2b(parts.astype(np.int32).tobytes(), digest_size=16).hexdigest()
    return with_sets(
        made, [seen_of_parts(weights, parts, one) for one in rows], max(share, 1 / total)
    ), digest


def _rows(axis: Breakdown | None, ladder: Ladder, inside: Mask) -> Iterator[Integers]:
    """Depth -> (leaf -> row, -1 where it is not shown)."""
    yield np.where(inside, 0, -1)
    if axis is None:
        return
    if axis.is_grouping:
        yield np.where(inside, axis.node_of_leaf.astype(np.int64) - 1, -1)
        return
    for depth in range(1, axis.deepest + 1):
        yield np.where(_told(axis, depth, inside, ladder), ladder.levels[depth], -1)


def _is_node(ladder: Ladder, parts: Integers) -> bool:
    """Whether a set of leaves is a node of the codelist, or all others are: the rungs of nodes already include it."""
    for level in ladder.levels[1:]:
        for part in (parts == 1, parts != 1):
            nodes = np.unique(level[part])
            if (
                len(nodes) == 1
                and int((level == nodes[0]).sum()) == int(part.sum())
                and int(parts.max()) == 1
            ):
                return True
    return False


def _bounded(name: str, axis: Breakdown | None, ladder: Ladder, space: Space) -> Side:
    """A variable of a filter that is no conjunction: whichever records pass, no cell sees more than all of |u|.

    Rows that are not above a contrast have one sign of it, so that they see what they see without a filter; the
    others see at most both distributions of which it is the difference.
    """
    any_row = at_most(ladder, 1.0, 4.0)
    rows = [any_row]
    if axis is not None and axis.is_grouping:
        rows.append(any_row)
    elif axis is not None:
        free = space.axis(axis)[1:]
        near = np.arange(ladder.rungs) < len(
            ladder.levels
        )  # those with all others are on both sides of many rows
        rows += [
            Seen(np.where(near & (one.plain > 0), one.plain, any_row.plain), any_row.bounded, 1.0)
            for one in free
        ]
    return side(name, ladder, rows)
