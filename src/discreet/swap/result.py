"""The result of swapping: households, partners, reasons and moves, and their names in logs and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.programme.codelist import Breakdown
from discreet.programme.swap import Composition, Profile, SwapRule

HOUSEHOLD = "swap/household"  # the purpose under which household ids are hashed


class Excluded(IntEnum):
    """Why a household is excluded from swapping."""

    NO = 0
    RULE = 1  # the rule's filter, for example group quarters
    ZERO_RISK = 2  # its supplied risk is zero
    SHARED_DWELLING = 3  # the dwelling could not follow one of its households
    NOT_LISTED = 4  # not in the table of households, for example an institution


class Why(IntEnum):
    """Whether and why a household was swapped or not."""

    NOT_SWAPPED = 0
    AT_RISK = 1  # swapped because it was at risk
    DONOR = 2  # swapped with one at risk
    RATE = 3  # swapped to reach the rate
    NO_DONOR = 4  # at risk, not swapped: no similar household in another region was left
    EXCLUDED = 5  # at risk, not swapped: ``Households.excluded`` gives the reason
    CAP = 6  # at risk, not swapped: the cap was reached
    QUOTA = 7  # at risk, not swapped: the quota of a level or region was reached


@dataclass(frozen=True, eq=False, repr=False)
class SwapHouseholds:
    """One row for each household, in the order of the hashes of their ids."""

    ids: NDArray[np.uint64]  # hashes under the secret with ``HOUSEHOLD``, ascending
    levels: tuple[str, ...]  # columns of the geography at which risk was measured, coarse to fine
    regions: tuple[tuple[str, ...], ...]  # level -> region code -> value of the column
    area: NDArray[np.int32]  # (level, household) -> region code
    size: NDArray[np.int32]  # persons
    risk: NDArray[
        np.float64
    ]  # (level, household) -> 1/count, the largest of the members; not only those at risk
    at_risk_level: NDArray[np.int8]  # coarsest level at which it is at risk, -1 for none
    excluded: NDArray[np.uint8]  # an ``Excluded``
    profiles: NDArray[np.int32]  # (profile, household) -> number of its values: equal ones are similar

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False, repr=False)
class Moves:
    """For each household that moved, the new value of every column that is swapped with the place."""

    ids: NDArray[np.uint64]  # hashes of the moved households, ascending
    values: Mapping[
        str, pa.Array
    ]  # column -> the donor's value for each of them; texts may have a dictionary

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False, repr=False)
class SwapResult:
    """The partners, levels, profiles and reasons of a swap."""

    households: SwapHouseholds
    partner: NDArray[np.integer[Any]]  # row of the partner, -1 for none
    level: NDArray[np.int8]  # index into ``Households.levels``, -1 for none
    profile: NDArray[np.int8]  # index into the rule's profiles, -1 for none
    inside: NDArray[np.bool_]  # whether the partner came from the same parent region
    why: NDArray[np.uint8]  # a ``Why``
    conflicts: tuple[str, ...]  # conflicts between rate, cap and quotas, without identities
    moves: Moves

    @property
    def swapped(self) -> int:
        """The number of households that moved."""
        return int((self.partner >= 0).sum())


NONE = ""  # where a household has no level, profile or partner

WHY: dict[int, str] = {
    Why.NOT_SWAPPED: "not swapped",
    Why.AT_RISK: "at risk",
    Why.DONOR: "donor",
    Why.RATE: "rate",
    Why.NO_DONOR: "no donor",
    Why.EXCLUDED: "excluded",
    Why.CAP: "cap",
    Why.QUOTA: "quota",
}
EXCLUDED: dict[int, str] = {
    Excluded.NO: NONE,
    Excluded.RULE: "by rule",
    Excluded.ZERO_RISK: "zero risk",
    Excluded.SHARED_DWELLING: "shared dwelling",
    Excluded.NOT_LISTED: "not in the table of households",
}


def profile_names(rule: SwapRule) -> tuple[str, ...]:
    """The name of each profile, in the order in which they are tried."""
    return tuple(_profile(profile) for profile in rule.similar)


def _profile(profile: Profile) -> str:
    return " + ".join(_part(part) for part in profile)


def _part(part: Breakdown | Composition) -> str:
    if isinstance(part, Breakdown):
        return part.full_name
    crossed = " x ".join(axis.full_name for axis in part.axes)
    return f"members by {crossed}" if crossed else "number of members"
