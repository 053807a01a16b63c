"""Targeted record swapping from a programme and a secret to who moved where; it writes nothing.

Whoever is exchanged is decided by the secret through keyed hashes of the households' ids, so that the same population
is swapped alike in every later release, whatever the order of its rows and whatever else its tables hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from discreet.engine.progress import Progress, Quiet
from discreet.maths.keys import hash_key
from discreet.maths.swap_pairing import Candidates, Outcome, Paired, Terms, pair
from discreet.schema.programme import Programme
from discreet.schema.swap_rule import Donors, SwapRule
from discreet.swap.carried import moves_of
from discreet.swap.households import gather
from discreet.swap.result import Households, SwapResult
from discreet.swap.tables import open_tables

_ALL = Fraction(1)


def swap(
    programme: Programme, secret: bytes, threads: int = 1, progress: Progress | None = None
) -> SwapResult:
    """Exchange the places of households at risk, and of as many others as the rate asks for."""
    progress = progress or Quiet()
    tables = open_tables(programme)
    gathered = gather(tables, secret, threads, progress)
    progress.stage("pairing households")
    paired = pair_households(gathered.households, tables.rule, secret)
    progress.stage("noting the moves")
    moves = moves_of(tables, gathered, paired.partner, secret)
    return SwapResult(
        gathered.households,
        paired.partner,
        paired.level,
        paired.profile,
        paired.inside,
        paired.outcome,
        tuple(_conflicts(paired, gathered.households, tables.rule)),
        moves,
    )


def pair_households(households: Households, rule: SwapRule, secret: bytes) -> Paired:
    """Find everybody's partner."""
    candidates = Candidates(
        households.ids,
        households.area,
        households.risk,
        households.at_risk_level,
        households.excluded > 0,
        households.profiles,
    )
    return pair(candidates, _terms(households, rule, secret))


def _terms(households: Households, rule: SwapRule, secret: bytes) -> Terms:
    number = len(households)
    return Terms(
        hash_key(secret, "swap/draw"),
        ceil(rule.rate * number),
        floor((_ALL if rule.cap is None else rule.cap) * number),
        rule.donors is Donors.RISK,
        rule.inside_parent,
        np.array([floor(rule.level_quotas.get(level, _ALL) * number) for level in rule.levels]),
        tuple(
            (level, _region_quota(households, level, rule.region_quotas[name]))
            for level, name in enumerate(rule.levels)
            if name in rule.region_quotas
        ),
    )


def _region_quota(households: Households, level: int, share: Fraction) -> NDArray[np.int64]:
    """Region -> the most of its households that may be exchanged."""
    sizes = np.bincount(households.area[level], minlength=len(households.regions[level]))
    return sizes * share.numerator // share.denominator


def _conflicts(paired: Paired, households: Households, rule: SwapRule) -> Iterator[str]:
    """What could not be had together; shares as declared, no counts."""
    if (paired.outcome == Outcome.CAP).any():
        yield f"the cap of {float(rule.cap or 1):g} leaves households at risk where they are"
    if (paired.outcome == Outcome.QUOTA).any():
        yield "a quota leaves households at risk where they are"
    if paired.swapped < ceil(rule.rate * len(households)):
        hindrance = {Outcome.CAP: "the cap", Outcome.QUOTA: "a quota"}
        why = hindrance.get(paired.short or Outcome.NO_DONOR, "a lack of similar households")
        yield f"the rate of {float(rule.rate):g} is not reached because of {why}"
