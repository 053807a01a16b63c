"""What levels, profiles and reasons of a swap are called in logs and reports; it decides nothing."""

from __future__ import annotations

from discreet.schema.codelist import Breakdown
from discreet.schema.swap_rule import Composition, Profile, SwapRule
from discreet.swap.result import Excluded, Why

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
    """Each profile in words, in the order in which they are tried."""
    return tuple(_profile(profile) for profile in rule.similar)


def _profile(profile: Profile) -> str:
    return " + ".join(_part(part) for part in profile)


def _part(part: Breakdown | Composition) -> str:
    if isinstance(part, Breakdown):
        return part.full_name
    crossed = " x ".join(axis.full_name for axis in part.axes)
    return f"members by {crossed}" if crossed else "number of members"
