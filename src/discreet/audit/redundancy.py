"""The redundancy of a programme's statistics, for the EU census of any country or for what an office declares.

The counting is in ``maths.attacks.redundancy``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.attacks.redundancy import CategoryLevel, PublishedAxes, Redundancy, redundancies
from discreet.programme import eu2021
from discreet.programme.codelist import Breakdown, codelist
from discreet.programme.programme import Programme

if TYPE_CHECKING:
    from discreet.synth import geography
else:
    geography = lazily("discreet.synth.geography")

Regions = tuple[int, int, int, int]  # NUTS 1, NUTS 2, NUTS 3, LAU

# Bach 2020 does not state which sub-totals it counted: with these its numbers are reproduced to about 1 %
INSIDE_2020 = {"HAR": (3,), "CAS.L": (3,), "YAE.L": (3,), "ROY": (4, 5)}
GROUPS_OF_WORKPLACES = (
    5  # LPW.N; LPW.L has the NUTS 2 regions and an unknown one instead of the first of them
)


class Mode(StrEnum):
    """What counts as a representation."""

    LITERAL = "literal"  # eq. 21 and 22 as printed: every breakdown is a separate variable
    NESTED = "nested"  # finer breakdowns also publish, and add up to, the coarser named ones
    BACH_2020 = "bach-2020"  # sub-totals without a name are further levels: near the paper's printed numbers


@dataclass(frozen=True)
class Division:
    """One breakdown: its level, the named levels it publishes, and its sub-totals that have no name.

    ``chain`` has the coarser named levels and itself last; levels that divide alike (NUTS 1 and NUTS 2 of a small
    country) have one name there, and None represents those that do not divide at all.
    """

    level: CategoryLevel
    chain: tuple[CategoryLevel | None, ...]
    unnamed: tuple[CategoryLevel, ...] = ()


@dataclass(frozen=True)
class UniverseRedundancy:
    """Tables that count the same records, and the redundancy of each statistic in them."""

    counted: str  # persons; dwellings where TLQ == "1"
    tables: int
    statistics: tuple[Redundancy, ...]


def eu_redundancy(regions: Regions, mode: Mode) -> list[UniverseRedundancy]:
    """The redundancy in the EU 2021 census of a country with these numbers of regions."""
    divisions = _eu_divisions(regions)
    groups: dict[str, list[tuple[Division, ...]]] = {}
    for table in eu2021.tables():
        axes = tuple(divisions[axis] for axis in table.axes if axis in divisions)
        groups.setdefault(_counted(table.unit, table.base), []).append(axes)
    return _universes(groups, mode)


def programme_redundancy(programme: Programme, mode: Mode) -> list[UniverseRedundancy]:
    """The redundancy in a declared programme; cubes that count different records do not represent each other."""
    divisions = {
        axis.full_name: _division(axis, named)
        for variable in programme.variables.values()
        for named in [[axis for axis in variable.breakdowns.values() if len(axis) > 1]]  # not only the total
        for axis in named
    }
    groups: dict[str, list[tuple[Division, ...]]] = {}
    for cube in programme.cubes:
        base = cube.base.canonical if cube.base else ""
        parts = (cube.source, cube.count, cube.weight, _counted(cube.unit, base))
        counted = " of ".join(part for part in parts if part)
        axes = tuple(divisions[axis.full_name] for axis in cube.axes if axis.full_name in divisions)
        groups.setdefault(counted, []).append(axes)
    return _universes(groups, mode)


def regions_of(country: str) -> Regions:
    """The numbers of regions of a Member State."""
    known = geography.COUNTRIES
    if country not in known:
        raise mistake("", "--country", country, f"use one of {', '.join(known)}")
    return known[country]


def tables_of(tables: Iterable[Sequence[Division]], mode: Mode) -> PublishedAxes:
    """The levels that the tables publish in a mode; only the nested mode uses which levels divide alike."""
    listed = tuple(tuple(table) for table in tables)
    if mode is Mode.NESTED:
        chains = {one.chain for table in listed for one in table}
        coarser = {
            chain[-1]: tuple(level for level in dict.fromkeys(chain[:-1]) if level and level != chain[-1])
            for chain in sorted(chains, key=len)
            if chain[-1]
        }
        return PublishedAxes(tuple(tuple(one.chain for one in table) for table in listed), coarser)
    if mode is Mode.BACH_2020:
        found = tuple(tuple((*one.unnamed, one.level) for one in table) for table in listed)
        return PublishedAxes(found, {}, trivial_once=True)
    return PublishedAxes(tuple(tuple((one.level,) for one in table) for table in listed), {})


def _universes(groups: Mapping[str, Sequence[Sequence[Division]]], mode: Mode) -> list[UniverseRedundancy]:
    return [
        UniverseRedundancy(counted, len(tables), tuple(redundancies(tables_of(tables, mode))))
        for counted, tables in groups.items()
    ]


def _counted(unit: str, base: str) -> str:
    return f"{unit} where {base}" if base else unit


def _eu_divisions(regions: Regions) -> dict[str, Division]:
    """Every breakdown except the whole country; those of one variable refine each other in the regulation's order."""
    if min(regions) < 1 or list(regions) != sorted(regions):
        raise mistake("", "regions", str(regions), "give numbers of NUTS 1, 2, 3 and LAU that do not fall")
    found: dict[str, Division] = {}
    for variable in eu2021.variables():
        levels: tuple[CategoryLevel, ...] = ()
        for name, size in sorted(_eu_sizes(variable, regions).items(), key=lambda item: item[1]):
            full = variable if name == variable else f"{variable}.{name}"
            level = CategoryLevel(variable, full, size)
            inside = (regions[0],) if full == "GEO.L" else INSIDE_2020.get(full, ())
            unnamed = tuple(
                CategoryLevel(variable, f"{full}/{k + 1}", parts) for k, parts in enumerate(inside)
            )
            levels = (*levels, level)
            chain = (next(same for same in levels if same.size == one.size) for one in levels)
            found[full] = Division(level, tuple(one if one.size > 1 else None for one in chain), unnamed)
    return found


def _eu_sizes(variable: str, regions: Regions) -> dict[str, int]:
    if variable == eu2021.GEOGRAPHY:
        return {"L": regions[1], "M": regions[2], "H": regions[3]}
    if variable == eu2021.WORKPLACE:
        return {"N": GROUPS_OF_WORKPLACES, "L": regions[1] + GROUPS_OF_WORKPLACES}
    tree = codelist(variable, eu2021.codelist_rows(variable))
    cuts = eu2021.breakdowns(variable)
    return {name: len(tree.level(cut) if isinstance(cut, int) else cut) for name, cut in cuts.items()}


def _division(axis: Breakdown, named: Sequence[Breakdown]) -> Division:
    """A declared breakdown among the others of its variable."""
    sums = [other for other in named if _refines(axis.node_of_leaf, other.node_of_leaf)]
    first: dict[tuple[int, ...], CategoryLevel] = {}  # partition -> the first breakdown that makes it
    for other in sorted(sums, key=lambda one: int(one.finest.sum())):
        first.setdefault(_partition(other.node_of_leaf), _level(other))
    coarser = [other.node_of_leaf for other in sums if _level(other).size < _level(axis).size]
    unnamed = tuple(
        CategoryLevel(axis.variable, f"{axis.full_name}/{depth}", len(np.unique(cut)))
        for depth, cut in enumerate(_cuts(axis), start=1)
        if _partition(cut) not in first and not any(_refines(other, cut) for other in coarser)
    )
    return Division(_level(axis), tuple(one if one.size > 1 else None for one in first.values()), unnamed)


def _level(axis: Breakdown) -> CategoryLevel:
    return CategoryLevel(axis.variable, axis.full_name, int(axis.finest.sum()))


def _refines(fine: NDArray[np.int32], coarse: NDArray[np.int32]) -> bool:
    return len(np.unique(np.stack([fine, coarse]), axis=1).T) == len(np.unique(fine))


def _partition(nodes: NDArray[np.int32]) -> tuple[int, ...]:
    """Leaves numbered by their part, in order of first occurrence: equal for equal partitions."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(node), len(seen)) for node in nodes)


def _cuts(axis: Breakdown) -> list[NDArray[np.int32]]:
    """The sub-totals of an axis: its leaves' nodes at each depth above the finest."""
    cuts, nodes = [], axis.node_of_leaf
    for depth in range(int(axis.depths.max()) - 1, 0, -1):
        nodes = np.where(axis.depths[nodes] > depth, axis.parents[nodes], nodes).astype(np.int32)
        cuts.append(nodes)
    return cuts[::-1]
