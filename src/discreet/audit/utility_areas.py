"""Small areas: how many are distorted beyond use, and in all their counts alike (Bach 2020, section 4 and Figure 4).

It owns the counting of distorted areas; the law of a published count comes from elsewhere. An observation is an area's
total or one of its categories (F, M and T). It is distorted where its relative error is at least a limit; an area is
distorted broadband where all its observations are, in the same direction, so that no ratio of them can repair it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.audit.once import OwnedTable
from discreet.maths.aligned import Integers, nodes_along
from discreet.maths.disclosure import Side
from discreet.maths.disclosure_kernels import ORIGINAL, PUBLISHED
from discreet.maths.pmf import Floats
from discreet.maths.utility import ExpectedLosses, class_names
from discreet.schema.crosstab import Levels

LawOf = Callable[[OwnedTable, int], ExpectedLosses | None]


@dataclass(frozen=True, eq=False)
class SizeClass:
    """Areas of one size class of the true count: limit -> how many are distorted by that share or more."""

    size: str
    observations: int
    distorted: dict[float, int]
    expected: dict[float, float] | None
    areas: int  # with people in every category, by their total
    broadband: dict[float, int]
    expected_broadband: dict[float, float] | None

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            name: {str(limit): number for limit, number in value.items()}
            if isinstance(value, dict)
            else value
            for name, value in vars(self).items()
        }


@dataclass(frozen=True, eq=False)
class AreaDistortion:
    """The areas of one level in one universe."""

    counted: str
    level: str
    by: str
    classes: tuple[SizeClass, ...]

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "counted": self.counted,
            "level": self.level,
            "by": self.by,
            "classes": [one.summary() for one in self.classes],
        }


@dataclass(frozen=True, eq=False)
class _Observed:
    """The observations of one level: area, category (0 for the total), counts and chances of a distortion."""

    area: Integers  # node of the area's axis, which is the same in every table of the universe
    category: Integers
    true: Integers
    published: Integers
    chance_up: Floats  # [observation, limit]; nan where the law is not known
    chance_down: Floats


@dataclass(eq=False)
class AreaCounts:
    """The observations, while tables are added."""

    areas: tuple[str, ...]
    by: str
    limits: tuple[float, ...]
    edges: tuple[int, ...]
    seen: dict[tuple[str, str, int], list[_Observed]] = field(default_factory=dict)
    codes: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def add(self, owned: OwnedTable, found: Side, law_of: LawOf) -> None:
        """Take the areas' totals and categories that this table stands for."""
        for crosstab in np.flatnonzero(owned.owned).tolist():
            levels = owned.levels(crosstab)
            area = self._area(levels)
            if area is not None:
                variable, depth = area
                observed = self._observed(owned, found, crosstab, variable, law_of(owned, crosstab))
                self.seen.setdefault((owned.universe.counted, variable, depth), []).append(observed)

    def distortions(self) -> tuple[AreaDistortion, ...]:
        """Count the distorted areas of every level."""
        return tuple(
            AreaDistortion(counted, f"{variable}:{depth}", self.by, tuple(self._classes(_joined(observed))))
            for (counted, variable, depth), observed in sorted(self.seen.items())
        )

    def _area(self, levels: Levels) -> tuple[str, int] | None:
        """The level of the areas, where a cross-tabulation is of areas alone or of areas by the categories."""
        areas = [level for level in levels if level[0] in self.areas]
        others = [level for level in levels if level[0] not in self.areas]
        if len(areas) == 1 and (not others or others == [(self.by, 1)]):
            return areas[0]
        return None

    def _observed(
        self, owned: OwnedTable, found: Side, crosstab: int, variable: str, law: ExpectedLosses | None
    ) -> _Observed:
        here = np.flatnonzero(found.own & (found.crosstab == crosstab) & (found.values[:, ORIGINAL] > 0))
        values = found.values[here]
        area = self._codes(owned, found.cells[here], variable)
        category = (
            self._codes(owned, found.cells[here], self.by) + 1
            if len(owned.levels(crosstab)) == 2
            else np.zeros(len(here), dtype=np.int64)
        )
        up, down = self._chances(values[:, ORIGINAL], values[:, -1], law)
        return _Observed(area, category, values[:, ORIGINAL], values[:, PUBLISHED], up, down)

    def _codes(self, owned: OwnedTable, cells: Integers, variable: str) -> Integers:
        """One number for each code of a variable, whichever breakdown a table has it in."""
        known = self.codes.setdefault((owned.universe.counted, variable), {})
        k = next(k for k, axis in enumerate(owned.cube.axes) if axis.variable == variable)
        axis = owned.cube.axes[k]
        numbers = np.array([known.setdefault(code, len(known)) for code in axis.codes], dtype=np.int64)
        return numbers[nodes_along(cells, owned.cube.strides[k], len(axis))]

    def _chances(
        self, true: Integers, counted: Integers, law: ExpectedLosses | None
    ) -> tuple[Floats, Floats]:
        """The probabilities that noise on the counted value distorts the true one by each limit, up and down."""
        up, down = (np.full((len(true), len(self.limits)), np.nan) for _ in range(2))
        if law is not None:
            pairs, place = np.unique(np.stack([true, counted]), axis=1, return_inverse=True)
            found = np.array(
                [law.tails(int(a), int(c), self.limits) for a, c in pairs.T], dtype=np.float64
            ).reshape(-1, 2, len(self.limits))
            up, down = found[place.ravel(), 0], found[place.ravel(), 1]
        return up, down

    def _classes(self, seen: _Observed) -> Iterator[SizeClass]:
        relative = (seen.published - seen.true) / seen.true
        klass = np.searchsorted(np.array(self.edges), seen.true, side="right")
        whole = _whole_areas(seen)
        total = {int(area): int(k) for area, k in zip(seen.area[seen.category == 0],
                                                      klass[seen.category == 0], strict=True)}  # fmt: skip
        of_area = np.array([total[int(area)] for area, _ in whole], dtype=np.int64)
        for k, name in enumerate(class_names(self.edges)[1:], start=1):
            here = klass == k
            groups = [members for (_, members), size in zip(whole, of_area, strict=True) if size == k]
            yield SizeClass(
                name,
                int(here.sum()),
                {limit: int((np.abs(relative[here]) >= limit).sum()) for limit in self.limits},
                self._expected((seen.chance_up + seen.chance_down)[here]),
                len(groups),
                {limit: sum(_is_broadband(relative[m], limit) for m in groups) for limit in self.limits},
                self._expected(_products(seen, groups)),
            )

    def _expected(self, chances: Floats) -> dict[float, float] | None:
        """Sums of probabilities; None where the law is not known."""
        sums = chances.sum(axis=0) if len(chances) else np.zeros(len(self.limits))
        return None if np.isnan(sums).any() else dict(zip(self.limits, sums.tolist(), strict=True))


def _joined(observed: list[_Observed]) -> _Observed:
    return _Observed(
        *(np.concatenate([getattr(one, name) for one in observed]) for name in vars(observed[0]))
    )


def _whole_areas(seen: _Observed) -> list[tuple[int, Integers]]:
    """The areas with somebody in every category, and the places of their observations."""
    categories = len(np.unique(seen.category))
    order = np.argsort(seen.area, kind="stable")
    starts = np.flatnonzero(np.diff(seen.area[order], prepend=-1))
    parts = np.split(order, starts[1:])
    return [(int(seen.area[part[0]]), part) for part in parts if len(part) == categories > 1]


def _is_broadband(relative: Floats, limit: float) -> bool:
    return bool((relative >= limit).all() or (relative <= -limit).all())


def _products(seen: _Observed, groups: list[Integers]) -> Floats:
    """The chance that all observations of an area go up, or all down, their noises taken as independent."""
    return np.array([seen.chance_up[m].prod(axis=0) + seen.chance_down[m].prod(axis=0) for m in groups])
