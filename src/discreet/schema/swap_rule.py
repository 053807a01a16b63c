"""The rule of targeted record swapping: what is risky, who is similar, how much is exchanged.

It owns the resolved rule and how it is described, not how it is read from a file nor how it is carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from discreet.schema.codelist import Breakdown
from discreet.schema.expression import Filter


class Donors(Enum):
    """How a donor is drawn among the similar households."""

    RISK = "risk"  # with probability proportional to its own risk
    UNIFORM = "uniform"


@dataclass(frozen=True)
class Composition:
    """The members of a household counted by a cross of breakdowns; without any, their number alone."""

    axes: tuple[Breakdown, ...]


Profile = tuple[Breakdown | Composition, ...]


@dataclass(frozen=True)
class SwapRule:
    """What ``[swap]`` declares."""

    k: int  # at risk: fewer than k persons alike
    risk: tuple[Breakdown, ...]
    similar: tuple[Profile, ...]  # tried in order
    rate: Fraction  # of the households
    cap: Fraction | None
    levels: tuple[str, ...]  # columns of the geography, coarse to fine; the last is its finest
    donors: Donors
    inside_parent: bool
    carry: tuple[str, ...]
    exclude: Filter | None
    risk_column: str | None  # the office's own risks, at the finest level
    exclude_zero_risk: bool
    level_quotas: Mapping[str, Fraction]  # level -> most households exchanged at it, as a share of all
    region_quotas: Mapping[
        str, Fraction
    ]  # level -> most households of each of its regions that are exchanged

    def variables(self) -> Iterator[str]:
        """The names of the variables that decide risk, similarity and exclusion."""
        yield from (axis.variable for axis in self.risk)
        for part in (part for profile in self.similar for part in profile):
            yield from (axis.variable for axis in (part.axes if isinstance(part, Composition) else (part,)))
        yield from self.exclude.variables if self.exclude else ()

    def canonical(self) -> dict[str, Any]:
        """Describe everything that decides the swaps, as JSON with a stable order."""
        return {
            "k": self.k,
            "risk": [axis.full_name for axis in self.risk],
            "similar": [[_part(part) for part in profile] for profile in self.similar],
            "rate": str(self.rate),
            "cap": None if self.cap is None else str(self.cap),
            "levels": list(self.levels),
            "donors": self.donors.value,
            "inside_parent": self.inside_parent,
            "carry": list(self.carry),
            "exclude": self.exclude.canonical if self.exclude else None,
            "risk_column": self.risk_column,
            "exclude_zero_risk": self.exclude_zero_risk,
            "level_quotas": {name: str(share) for name, share in sorted(self.level_quotas.items())},
            "region_quotas": {name: str(share) for name, share in sorted(self.region_quotas.items())},
        }


def _part(part: Breakdown | Composition) -> Any:
    if isinstance(part, Composition):
        return {"composition": [axis.full_name for axis in part.axes]}
    return part.full_name
