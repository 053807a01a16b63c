"""Which cubes are fitted together, and in which order, so that every shared cell gets one value.

A table is the set of nodes that its axes divide further; what two tables share is the intersection of these sets.
Blocks are arranged as a tree with the running intersection property: what a block shares with all blocks before it, it
shares with one of them, its parent. Then the block is fitted to that one margin of its parent: each cell of the margin
is divided over the block's cells in it, which is always possible in whole numbers >= 0, and every other shared margin
is a sum of it. Cubes that share margins in a circle have no such tree; they are joined to one finer table, and their
cells are sums of its cells. A table of given margins in a circle need not exist: that A = B, B = C and A differs from C
for all persons are three margins that agree in pairs (see decision 017).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from discreet.errors import Mistakes, Problem
from discreet.programme.codelist import TOTAL, Breakdown, Codelist, breakdown
from discreet.programme.cube import Cube, signatures
from discreet.programme.programme import Programme

MOST_JOINED = 3_000_000  # cells of a table that cubes are joined to, margins included
NAMED = 4  # cubes that a message lists

Item = tuple[str, str]  # a variable and one of its codes, which a table divides further


@dataclass(frozen=True, eq=False)
class Block:
    """Some cubes that are fitted together as one table."""

    axes: tuple[Breakdown, ...]  # one for each variable of the cubes, fine enough for all of them
    cubes: tuple[Cube, ...]
    parent: int | None = None  # the block, settled before, whose margin it is fitted to

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes along each axis."""
        return tuple(len(axis) for axis in self.axes)


@dataclass(frozen=True)
class _Draft:
    """A block whose place in the tree is not known yet."""

    items: frozenset[Item]
    cubes: tuple[Cube, ...]


def blocks_of(programme: Programme) -> tuple[Block, ...]:
    """The blocks of a programme, each after its parent; a programme that cannot be fitted so is refused."""
    trees = {name: variable.codelist for name, variable in programme.variables.items()}
    return arranged(programme.cubes, trees, file=str(programme.path))


def block_problems(programme: Programme) -> Iterator[Problem]:
    """Why a programme that declares tables that add up cannot have them."""
    try:
        if programme.release.consistent:
            blocks_of(programme)
    except Mistakes as mistakes:
        yield from mistakes.problems


def arranged(
    cubes: Sequence[Cube], trees: Mapping[str, Codelist], most: int = MOST_JOINED, file: str = ""
) -> tuple[Block, ...]:
    """Arrange the cubes of each population (unit, base and what is counted) as a tree of blocks."""
    populations: dict[object, list[Cube]] = {}
    for cube in cubes:
        populations.setdefault(signatures([cube])[0], []).append(cube)  # the first is the grand total
    blocks: list[Block] = []
    problems: list[Problem] = []
    for members in populations.values():
        try:
            tree = list(_tree([_Draft(_items(cube.axes), (cube,)) for cube in members], trees, most, file))
        except Mistakes as mistakes:
            problems.extend(mistakes.problems)
            continue
        first = len(blocks)
        for draft, parent in tree:
            above = None if parent is None else first + parent
            blocks.append(Block(_axes(draft.cubes, trees), draft.cubes, above))
    if problems:
        raise Mistakes(problems)
    return tuple(blocks)


def _items(axes: Iterable[Breakdown]) -> frozenset[Item]:
    inner = ((axis, int(node)) for axis in axes for node in set(axis.parents[1:].tolist()))
    return frozenset((axis.variable, axis.codes[node]) for axis, node in inner)


def _tree(
    drafts: list[_Draft], trees: Mapping[str, Codelist], most: int, file: str
) -> Iterator[tuple[_Draft, int | None]]:
    """Take off one block after the other that shares all it shares with one other; join two where none does."""
    taken: list[tuple[_Draft, _Draft | None]] = []
    left = list(drafts)
    while len(left) > 1:
        found = next(_ears(left), None)
        if found is None:
            left = _joined(left, trees, most, file)
            continue
        taken.append(found)
        left.remove(found[0])
    taken.append((left[0], None))
    taken.reverse()
    # a parent may have been joined with others after that
    place = {cube.id: number for number, (draft, _) in enumerate(taken) for cube in draft.cubes}
    for draft, parent in taken:
        yield draft, None if parent is None else place[parent.cubes[0].id]


def _ears(left: Sequence[_Draft]) -> Iterator[tuple[_Draft, _Draft]]:
    """Blocks that can be taken off, with their parents: first those that are wholly contained, then larger ones."""
    for draft in sorted(left, key=lambda one: len(one.items)):
        others = [one for one in left if one is not draft]
        shared = draft.items & frozenset().union(*(one.items for one in others))
        parents = [one for one in others if shared <= one.items]
        if parents:
            yield draft, max(parents, key=lambda one: len(one.items))


def _joined(left: Sequence[_Draft], trees: Mapping[str, Codelist], most: int, file: str) -> list[_Draft]:
    """Replace the two blocks whose common refinement has fewest cells by it."""

    children = _children(trees)

    def cells(pair: tuple[_Draft, _Draft]) -> int:
        nodes: Counter[str] = Counter()
        for variable, code in pair[0].items | pair[1].items:
            nodes[variable] += children[variable, code]
        return prod(1 + number for number in nodes.values())

    one, other = min(combinations(left, 2), key=cells)
    if cells((one, other)) > most:
        names = [cube.id for draft in left for cube in draft.cubes]
        shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        value = f"cubes {shown} share margins in a circle, and fitting {one.cubes[0].id} and "
        value += f"{other.cubes[0].id} together needs {cells((one, other)):.3g} cells, more than {most}"
        remedy = "publish fewer or coarser cubes that add up, or leave out consistent"
        raise Mistakes([Problem(file, "release.consistent", value, remedy)])
    both = _Draft(one.items | other.items, (*one.cubes, *other.cubes))
    return [both, *(draft for draft in left if draft is not one and draft is not other)]


def _children(trees: Mapping[str, Codelist]) -> Counter[Item]:
    """How many codes are directly below each code."""
    return Counter(
        (name, tree.codes[parent] if parent >= 0 else TOTAL)
        for name, tree in trees.items()
        for parent in tree.parents
    )


def _axes(cubes: Iterable[Cube], trees: Mapping[str, Codelist]) -> tuple[Breakdown, ...]:
    """One axis for each variable, fine enough for all cubes, in the order of the variables' names."""
    axes: dict[str, Breakdown] = {}
    for axis in (axis for cube in cubes for axis in cube.axes):
        known = axes.setdefault(axis.variable, axis)
        if set(axis.codes) >= set(known.codes):
            axes[axis.variable] = axis
        elif not set(axis.codes) <= set(known.codes):
            axes[axis.variable] = _refinement(known, axis, trees[axis.variable])
    return tuple(axes[name] for name in sorted(axes))


def _refinement(one: Breakdown, other: Breakdown, tree: Codelist) -> Breakdown:
    """The coarsest breakdown of a variable that is finer than both."""
    codes = {*one.codes[1:], *other.codes[1:]}
    inner = {
        tree.codes[tree.parents[tree.position[code]]]
        for code in codes
        if tree.parents[tree.position[code]] >= 0
    }
    cut = sorted(tree.position[code] for code in codes - inner)
    return breakdown(one.variable, f"{one.name}+{other.name}", tree, cut)
