"""Trials of swapping at several rates on the records themselves, and the choice of a rate.

The partners are drawn with a key of the trial, not with the secret of a release, so that the swap of the release will
exchange other households, but about as many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.io.progress import Progress
from discreet.programme.programme import Programme
from discreet.programme.swap import SwapRule
from discreet.swap.figures import LevelFigures, figures_of, read_members
from discreet.swap.households import gather
from discreet.swap.result import Moves, SwapHouseholds, SwapResult, profile_names
from discreet.swap.swapping import pair_households
from discreet.swap.tables import open_tables

RATES = (Fraction(0), Fraction(1, 100), Fraction(1, 50), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))
TRUE_UNIQUES = 0.5  # largest share of apparent uniques that are true: no better than a coin toss
NO_MOVES = Moves(np.empty(0, dtype=np.uint64), {})


@dataclass(frozen=True)
class RateTrial:
    """The result of one rate, as shares of households and of apparent uniques in the finest regions."""

    rate: float
    swapped: float
    at_risk_left: float
    true_uniques: float | None  # there was one such person, the same or another
    same_persons: float | None  # and it is the same person


@dataclass(frozen=True)
class SwapAdvice:
    """The trials and the recommended rate; None if none of them is enough."""

    k: int
    level: str
    at_risk: float  # share of households with a member at risk in the finest regions
    limit: float
    declared: float
    trials: tuple[RateTrial, ...]
    rate: float | None


def advise_swap(
    programme: Programme, secret: bytes, threads: int, progress: Progress, limit: float | None = None
) -> SwapAdvice | None:
    """Try several rates of a programme's swap; None where it declares none."""
    rule = programme.swap
    if rule is None:
        return None
    tables = open_tables(programme)
    households = gather(tables, secret, threads, progress).households
    members = read_members(programme, households, secret)
    rates = sorted({*RATES, rule.rate})
    progress.stage("trying swap rates", len(rates))
    trials = []
    for rate in rates:
        figures = figures_of(
            _swapped(households, replace(rule, rate=rate), secret), members, rule.k, profile_names(rule)
        )
        trials.append(_trial(rate, figures.levels[-1], figures.swapped, len(households)))
        progress.step()
    wanted = _wanted(limit, programme.gates.true_uniques)
    finest = figures.levels[-1]
    return SwapAdvice(
        rule.k,
        finest.level,
        finest.at_risk_before / len(households),
        wanted,
        float(rule.rate),
        tuple(trials),
        next(_enough(trials, wanted), None),
    )


def _wanted(limit: float | None, gate: float | None) -> float:
    """The largest share of apparent uniques that may be true: as requested, as the gate declares, or the default."""
    return next(share for share in (limit, gate, TRUE_UNIQUES) if share is not None)


def _swapped(households: SwapHouseholds, rule: SwapRule, secret: bytes) -> SwapResult:
    paired = pair_households(households, rule, secret)
    return SwapResult(
        households, paired.partner, paired.level, paired.profile, paired.inside, paired.outcome, (), NO_MOVES
    )


def _trial(rate: Fraction, finest: LevelFigures, swapped: int, households: int) -> RateTrial:
    return RateTrial(
        float(rate),
        swapped / households,
        finest.at_risk_after / households,
        finest.chance_true,
        finest.chance_same,
    )


def _enough(trials: Sequence[RateTrial], limit: float) -> Iterator[float]:
    """The rates at which few enough apparent uniques are true."""
    return (trial.rate for trial in trials if trial.true_uniques is None or trial.true_uniques <= limit)
