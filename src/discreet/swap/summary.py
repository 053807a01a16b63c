"""The public summary of a swap: what users may know of it, without identities or counts.

It owns what is told, in JSON and Markdown. Never told: regions, numbers of households, how many at risk kept their
place. Shares are rounded so that a step stands for many households.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import numpy as np

from discreet.schema.rules import Disclosure
from discreet.schema.swap_rule import SwapRule
from discreet.swap.naming import profile_names
from discreet.swap.result import SwapResult
from discreet.swap.whole_folder import WholeFolder

SUMMARY = "swap-summary"
_STEP_HOUSEHOLDS = 10  # that a step of a rounded share stands for at least

Told = Mapping[str, Any]


def write_summary(summary: Told, folder: WholeFolder) -> None:
    """Write both forms into a folder."""
    with folder.file(f"{SUMMARY}.json") as file:
        file.write((json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode())
    with folder.file(f"{SUMMARY}.md") as file:
        file.write(markdown(summary).encode())


def public_summary(
    result: SwapResult, rule: SwapRule, geography: tuple[str, ...], disclose: Disclosure
) -> dict[str, Any]:
    """What may be told: that it was done; with ``variance`` rounded shares; with ``law`` also the rule."""
    told: dict[str, Any] = {
        "method": "targeted record swapping",
        "unit": "households as wholes",
        "exchanged": [*geography, *rule.carry],
    }
    if disclose is Disclosure.NONE:
        return told
    households = len(result.households)
    moved = result.partner >= 0
    told["share_of_households_swapped"] = rounded_share(result.swapped, households)
    told["share_of_households_swapped_at"] = {
        level: rounded_share(int(np.sum(moved & (result.level == number))), households)
        for number, level in enumerate(result.households.levels)
    }
    return told if disclose is Disclosure.VARIANCE else {**told, "rule": _rule(rule)}


def rounded_share(part: int, whole: int) -> str:
    """A share in percent, rounded to steps of at least one percent and ten households; none and few look alike."""
    step = max(1, ceil(100 * _STEP_HOUSEHOLDS / whole)) if whole else 100
    steps = round(100 * part / whole / step) if whole else 0
    return f"about {min(100, steps * step)} %" if steps else f"under {step} %"


def _rule(rule: SwapRule) -> dict[str, Any]:
    return {
        "at_risk_below": rule.k,
        "risk_variables": [axis.full_name for axis in rule.risk],
        "similar_in": list(profile_names(rule)),
        "rate": float(rule.rate),
        "cap": None if rule.cap is None else float(rule.cap),
        "donors": rule.donors.value,
        "donors_inside_parent_first": rule.inside_parent,
    }


def markdown(summary: Told) -> str:
    """The same for readers."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: Told) -> Iterator[str]:
    yield "# Record swapping"
    yield ""
    yield (
        "Before anything was counted, some households were exchanged with similar ones of other regions, all members"
        " together. Who stands out in a region may therefore not live there. Nothing but the place was exchanged:"
        f" {', '.join(summary['exchanged'])}."
    )
    if "share_of_households_swapped" in summary:
        yield ""
        yield f"Households exchanged: {summary['share_of_households_swapped']}."
        yield ""
        yield "| exchanged between regions of | share of all households |"
        yield "|---|---|"
        for level, share in summary["share_of_households_swapped_at"].items():
            yield f"| {level} | {share} |"
    if rule := summary.get("rule"):
        yield ""
        yield from (f"- {key.replace('_', ' ')}: {_worded(value)}" for key, value in rule.items())


def _worded(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
