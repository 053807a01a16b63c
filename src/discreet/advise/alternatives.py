"""What else an office could choose: safer, finer and coarser noise beside the proposal, with gains and losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from discreet.advise.advise import Advice, Task, judge
from discreet.errors import InfeasiblePTable, Mistakes
from discreet.maths.attacks.averaging import success
from discreet.maths.feasible import Constraint, Line, ProgrammeExposure, beyond, plane
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.budget import law_of

SAFER = 1.5  # times the variance of the proposal


class Choice(StrEnum):
    """The rows of the table."""

    PROPOSED = "proposed"
    EDGE = "edge"  # what keeps every limit, where nothing keeps them with the margin
    SAFER = "safer"  # more noise than proposed
    FINER = "finer"  # the least noise that keeps every limit, without a margin
    COARSER = "coarser"  # the most noise that keeps every limit, without a margin
    DECLARED = "declared"


@dataclass(frozen=True)
class Alternative:
    """One choice of noise with its risks and errors."""

    choice: Choice
    noise: Mapping[str, float]  # V and D, or the epsilon or rho of the whole programme
    error: float  # standard deviation of the noise of a large count
    success: float  # of averaging the most exposed count
    revealed: float | None  # that the largest change is revealed; None of unbounded noise
    stays: float  # that a count of 1 is published unchanged
    distorted: float  # that a small count is off by more than the limit
    breaks: tuple[Constraint, ...]  # the limits that it does not keep


def alternatives(advice: Advice) -> tuple[Alternative, ...]:
    """The proposal first, then what is safer, finer and coarser, and what is declared; none where nothing is feasible.

    Where nothing keeps the limits with the margin, what keeps them without it is first.
    """
    rows = _cell_key(advice) if advice.task.kind is LawKind.CELL_KEY else _private(advice)
    seen: dict[tuple[bool, tuple[tuple[str, float], ...]], Alternative] = {}
    for row in rows:
        seen.setdefault((row.choice is Choice.DECLARED, tuple(row.noise.items())), row)
    return tuple(seen.values())


def _cell_key(advice: Advice) -> Iterator[Alternative]:
    proposal, found = advice.proposal or advice.edge, advice.plane
    if proposal is None:
        return
    V, D, judged = float(proposal.noise["V"]), int(proposal.noise["D"]), proposal.judged
    yield Alternative(
        Choice.EDGE if advice.proposal is None else Choice.PROPOSED,
        {"V": V, "D": D},
        math.sqrt(judged.variance),
        judged.success,
        judged.revealed,
        judged.stays,
        judged.distorted,
        (),
    )
    columns = np.flatnonzero(found.feasible.any(axis=0))
    wanted = {Choice.SAFER: _on_grid(advice, SAFER * V)}
    if len(columns):
        wanted |= {Choice.FINER: float(found.V[columns[0]]), Choice.COARSER: float(found.V[columns[-1]])}
    for choice, variance in wanted.items():
        row = _row(advice, choice, round(variance, 6), None)
        if row is not None:
            yield row
    if advice.task.declared is not None:
        row = _row(advice, Choice.DECLARED, *advice.task.declared)
        if row is not None:
            yield row


def _on_grid(advice: Advice, variance: float) -> float:
    grid = advice.plane.V
    return float(grid[min(int(np.searchsorted(grid, variance - 1e-9)), len(grid) - 1)])


def _row(advice: Advice, choice: Choice, V: float, D: int | None) -> Alternative | None:
    """A choice judged on its own p-table; without D, with the smallest that hides itself.

    What is safer hides its largest change at least as well as the proposal does.
    """
    exposure = ProgrammeExposure(advice.exposed.ratio, advice.facts.tuples)
    candidates = advice.plane.D if D is None else np.array([D], dtype=np.int64)
    here = plane(np.array([V]), candidates, exposure, advice.task.limits, advice.task.js)
    usable = here.holds[Constraint.PTABLE][:, 0]
    hidden = usable & here.holds[Constraint.BOUND][:, 0]
    first = advice.proposal or advice.edge
    if choice is Choice.SAFER and first is not None:
        hidden &= here.revealed[:, 0] <= (first.judged.revealed or 0.0)
    rows = np.flatnonzero(hidden if hidden.any() else usable)
    if not len(rows):
        return None
    at, D = int(rows[0]), int(candidates[rows[0]])
    try:
        table = solve(PTableParameters(D, V, advice.task.js))
    except (InfeasiblePTable, Mistakes):
        return None
    law, last = PTableLaw(table), table.last_row
    judged = judge(
        law, law.row(last).shifted(-last), D, advice.exposed.ratio, advice.facts, advice.task.limits
    )
    breaks = tuple(name for name, obeyed in here.holds.items() if not obeyed[at, 0])
    if choice is Choice.DECLARED and advice.declared is not None:
        breaks = advice.declared
    return Alternative(
        choice,
        {"V": V, "D": D},
        math.sqrt(judged.variance),
        judged.success,
        judged.revealed,
        judged.stays,
        judged.distorted,
        breaks,
    )


def _private(advice: Advice) -> Iterator[Alternative]:
    """By the parameter of one count: more noise is a smaller one."""
    proposal, drawn, task = advice.proposal or advice.edge, advice.line, advice.task
    if proposal is None or proposal.parameter is None or drawn is None or task.parameters is None:
        return
    parameter = proposal.parameter
    first = Choice.EDGE if advice.proposal is None else Choice.PROPOSED
    wanted = {first: parameter, Choice.SAFER: _with_variance(drawn, SAFER, parameter)}
    if drawn.most is not None:
        wanted[Choice.FINER] = drawn.most.value
    if drawn.least is not None:
        wanted[Choice.COARSER] = drawn.least.value
    for choice, value in wanted.items():
        total = float(proposal.noise[drawn.law.name]) if choice is first else value / task.parameters[0]
        yield _private_row(advice, drawn, task, choice, value, total)


def _with_variance(drawn: Line, times: float, parameter: float) -> float:
    return drawn.law.at_least_variance(times * drawn.law.variance(parameter))


def _private_row(
    advice: Advice, drawn: Line, task: Task, choice: Choice, parameter: float, total: float
) -> Alternative:
    """A choice judged by its law; ``total`` is what the whole programme costs."""
    if task.rule is None:
        raise ValueError("a law with a budget has a rule")
    law = law_of(task.rule, Fraction(str(float(f"{parameter:.6g}"))))
    change = law.row(0)
    broken = tuple(
        one.constraint
        for one in drawn.limits
        if (parameter < one.value * (1 - 1e-9) if one.is_least else parameter > one.value * (1 + 1e-9))
    )
    return Alternative(
        choice,
        {drawn.law.name: float(f"{total:.3g}")},
        math.sqrt(change.variance),
        success(change.variance, advice.facts.by_cell.ratio),
        None,
        law.row(1).at(1),
        beyond(change, task.limits.change),
        broken,
    )
