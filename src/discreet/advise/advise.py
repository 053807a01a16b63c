"""The adviser: finds noise parameters that keep risk and error of a programme within limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.advise.facts import PERSONS, Attack, Facts
from discreet.advise.forecast import DELTA, USUAL, rho_for
from discreet.audit.declared_averaging import TOTAL, ExposedCount
from discreet.errors import InfeasiblePTable, Mistakes, mistake
from discreet.lazy import lazily
from discreet.maths.attacks.averaging import contour, laplace_epsilon, least_variance, success
from discreet.maths.attacks.bounds import epsilon_of_bound, epsilon_of_reconstruction
from discreet.maths.feasible import (
    GAUSSIAN,
    GEOMETRIC,
    Constraint,
    Line,
    LineFacts,
    Plane,
    ProgrammeExposure,
    RiskLimits,
    beyond,
    line,
    plane,
    reveal,
)
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import PublishedLaw
from discreet.maths.utility import ExpectedLosses
from discreet.perturb.budget import law_of, noise_parameters
from discreet.programme.noise import BudgetRule, CellKeyNoise, Claim, PrivateNoise
from discreet.programme.programme import Programme, attributes_of

if TYPE_CHECKING:
    from discreet.advise import swap as swapping
else:
    swapping = lazily("discreet.advise.swap")  # few programmes swap

KINDS = (LawKind.CELL_KEY, LawKind.GEOMETRIC, LawKind.DISCRETE_GAUSSIAN)
DISTORTIONS = (0.2, 0.5, 1.0)  # relative errors of Bach's Figure 4
STEPS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
MOST_COLUMNS, LEAST_TOP = 100, 8.0  # of the grid of variances
LEAST_ROWS, MOST_ROWS = 15, 60  # of the grid of largest changes
MOST_TRIALS = 20  # of proposals that the attack rejects
LEAST_RATIO = 1e-9  # of a count that averaging recovers with certainty
DIGITS = 3  # of an epsilon or rho that is proposed
RECONSTRUCTION_CONFIDENCE = 0.99  # as in the paper
USUAL_LIMITS = RiskLimits()


@dataclass(frozen=True)
class Task:
    """A task for the adviser: the kind of noise, the limits, and the fixed parts of a declared rule."""

    kind: LawKind = LawKind.CELL_KEY
    limits: RiskLimits = USUAL_LIMITS
    js: int = 0
    declared: tuple[float, int] | None = None  # V and D of the programme
    rule: PrivateNoise | None = None  # a law with a budget of 1, split as declared
    parameters_of_rule: Callable[[], tuple[float, float] | None] = field(default=lambda: None, compare=False)
    budget: float | None = None  # largest cost of the whole programme
    margin: float = 0.0  # a proposal is inside every limit by this share of the limit

    @property
    def parameters(self) -> tuple[float, float] | None:
        """The smallest and largest noise parameter of the programme under that budget."""
        return self.parameters_of_rule()

    def inside(self) -> Task:
        """The same task with limits that are tightened by the margin, and none left."""
        budget = None if self.budget is None else (1 - self.margin) * self.budget
        return replace(self, limits=self.limits.inside(self.margin), budget=budget, margin=0.0)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            remedy = f"the adviser supports {', '.join(kind.value for kind in KINDS)}"
            raise mistake("", "--kind", self.kind.value, remedy)
        if self.kind is not LawKind.CELL_KEY and self.rule is None:
            raise mistake("", "--kind", self.kind.value, "give a programme file, whose budget can be divided")


@dataclass(frozen=True)
class JudgedNoise:
    """The risks and errors of a law, computed from the law itself."""

    variance: float
    success: float  # of averaging the most exposed count
    revealed: float | None  # that the tuples reveal the bound; None of unbounded noise
    stays: float  # probability that a count of 1 is published unchanged
    distorted: float  # share of small counts that are off by more than the limit
    areas: (
        Mapping[float, float] | None
    )  # relative error -> number of areas expected to be off by it; needs data


@dataclass(frozen=True)
class Proposal:
    """Proposed parameters, as written in a programme file, and their risks and errors."""

    noise: Mapping[str, str | float | int]
    parameter: float | None  # of one count, of a law with a budget
    judged: JudgedNoise
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{key} = {value}" for key, value in self.noise.items())


@dataclass(frozen=True, eq=False)
class Advice:
    """The result of the adviser, with a proposal unless nothing is feasible."""

    facts: Facts
    task: Task
    plane: Plane
    shown: Task  # whose limits plane and line show
    proposal: Proposal | None
    exposed: ExposedCount  # what averaging recovers best; with data, under the proposed noise
    declared: tuple[Constraint, ...] | None  # what the declared V and D break; None where none are declared
    swap: swapping.SwapAdvice | None = None
    failures: tuple[str, ...] = ()  # why a proposal was rejected
    edge: Proposal | None = None  # what keeps the limits without the margin, where nothing keeps them with it

    @property
    def left_out(self) -> tuple[str, ...]:
        """The populations whose counts only averaging judged: least squares over all their tables is too large."""
        if self.facts.attack is None or self.task.kind is not LawKind.CELL_KEY or self.exposed.at_least:
            return ()
        return self.facts.attack(USUAL).left_out

    @cached_property
    def line(self) -> Line | None:
        """The line of the requested law; of the geometric law for the cell key method, which needs no line itself."""
        return _line(self.facts, self.shown)

    @cached_property
    def least_variance(self) -> float:
        """The smallest V at which averaging stays within its limit."""
        return least_variance(self.exposed.ratio, self.task.limits.averaging)

    @cached_property
    def relaxed(self) -> dict[Constraint, tuple[float, int]]:
        """The parameters that would be feasible without one constraint.

        Where the exposure is only known to be at least so much, they are known without the limit of averaging only.
        """
        names = [Constraint.AVERAGING] if self.exposed.at_least else list(self.plane.holds)
        options = {name: self.plane.without(name) for name in names}
        return {name: found for name, found in options.items() if found is not None}


def advise(facts: Facts, task: Task, swap: swapping.SwapAdvice | None = None) -> Advice:
    """Find the feasible region and propose the least noise, or the least budget, inside it."""
    exposed, made = _proposed(facts, task.inside())
    failures = () if not isinstance(made, str) else (made,)
    proposal = None if isinstance(made, str) else made
    edge = None
    if proposal is None and task.margin:
        at_edge, found = _proposed(facts, replace(task, margin=0.0))
        edge = None if isinstance(found, str) else found
        # plane and alternatives are judged by the count that judged it; no count is more exposed than one of all tables
        if edge is not None or (exposed.at_least and not at_edge.at_least):
            exposed = at_edge
    # what excludes each other is shown for the limits that were searched with
    shown = task.inside() if proposal is None and edge is None else task
    seen = exposed if task.kind is LawKind.CELL_KEY else facts.by_participants
    judged = _plane(seen, facts, shown)
    broken = None if task.declared is None else _broken(exposed, facts, task)
    return Advice(facts, task, judged, shown, proposal, exposed, broken, swap, failures, edge)


def _proposed(facts: Facts, task: Task) -> tuple[ExposedCount, Proposal | str | None]:
    """What averaging recovers best, and the proposal within the limits of a task, or why nothing is proposed."""
    if task.kind is LawKind.CELL_KEY:
        return _cell_key(facts, task)
    return facts.by_cell, _private(_line(facts, task), facts, task)


def grid(exposed: ProgrammeExposure, limits: RiskLimits) -> tuple[Any, Any]:
    """The grid of variances and largest changes, which extends beyond what the constraints need."""
    need = contour(limits.averaging) / exposed.ratio
    top = max(LEAST_TOP, 1.5 * need)
    step = next((step for step in STEPS if top / step <= MOST_COLUMNS), STEPS[-1])
    columns = min(math.ceil(top / step), MOST_COLUMNS)
    widest = math.ceil(math.sqrt(3 * need)) + 3
    rows = min(max(LEAST_ROWS, limits.largest_change + 5, widest), max(MOST_ROWS, limits.largest_change))
    return np.arange(1, columns + 1) * step, np.arange(1, rows + 1, dtype=np.int64)


def task_of(programme: Programme, kind: LawKind | None, limits: RiskLimits, margin: float = 0.0) -> Task:
    """The task of a declared programme; its gates add limits."""
    noise, gates = programme.noise, programme.gates
    wanted = kind or noise.kind
    limits = replace(
        limits,
        averaging=min(limits.averaging, 1.0 if gates.averaging is None else gates.averaging),
        revealed=min(limits.revealed, 1.0 if gates.bound_revealed is None else gates.bound_revealed),
    )
    table = noise.table if isinstance(noise, CellKeyNoise) else None
    plain = isinstance(table, PTableParameters) and isinstance(table.V, int | float)
    declared = (float(table.V), table.D) if plain else None  # type: ignore[union-attr, arg-type]
    js = table.js if isinstance(table, PTableParameters) else 0
    rule = _rule(programme, wanted)
    budget = None if gates.epsilon is None else _budget(gates.epsilon, wanted)
    parameters = cache(lambda: _parameters(rule, programme))  # the cell key method is judged without them
    return Task(wanted, limits, js, declared, rule, parameters, budget, margin)


def _rule(programme: Programme, kind: LawKind) -> PrivateNoise:
    """The law with a budget of one, divided as the programme divides it."""
    noise, attributes = programme.noise, attributes_of(programme.variables, programme.population)
    wanted = LawKind.GEOMETRIC if kind not in (LawKind.GEOMETRIC, LawKind.DISCRETE_GAUSSIAN) else kind
    template = (
        noise
        if isinstance(noise, PrivateNoise)
        else PrivateNoise(wanted, BudgetRule(Fraction(1)), attributes=attributes)
    )
    return replace(template, kind=wanted, budget=replace(template.budget, total=Fraction(1)), bound=None)


def _budget(epsilon: Fraction, kind: LawKind) -> float:
    return float(rho_for(epsilon, DELTA) if kind is LawKind.DISCRETE_GAUSSIAN else epsilon)


def _parameters(rule: PrivateNoise, programme: Programme) -> tuple[float, float] | None:
    """The smallest and largest noise parameter of a count of persons, or of the unit that is counted."""
    supposed = replace(rule, claim=Claim.NONE)  # what is not declared is reported by protect
    every = noise_parameters(supposed, [cube for cube in programme.cubes if not cube.weight])
    persons = [float(value) for signature, value in every.items() if signature.unit == PERSONS]
    values = persons or [float(value) for value in every.values()]
    return (min(values), max(values)) if values else None


def _line(facts: Facts, task: Task) -> Line | None:
    low, high = task.parameters or (1 / facts.crosstabs, 1 / facts.crosstabs)
    law = GAUSSIAN if task.kind is LawKind.DISCRETE_GAUSSIAN else GEOMETRIC
    line_facts = LineFacts(
        facts.by_cell.ratio, facts.areas, facts.population, facts.cells, high / low, 1 / low, task.budget
    )
    return line(law, line_facts, task.limits)


def _plane(exposed: ExposedCount, facts: Facts, task: Task) -> Plane:
    programme = ProgrammeExposure(exposed.ratio, facts.tuples)
    return plane(*grid(programme, task.limits), programme, task.limits, task.js)


def _cell_key(facts: Facts, task: Task) -> tuple[ExposedCount, Proposal | str | None]:
    """Propose the smallest V, then the smallest D, judged on the solved p-table.

    With data the attack that judges a release judges the proposal too: while it succeeds too often, the count that it
    recovers is the one that the next V must protect.
    """
    certain = _certain(facts)
    if certain is not None and _plane(certain, facts, task).smallest is None:
        return certain, None
    exposed = _attacked(USUAL, facts, facts.by_participants)[1]
    for _ in range(MOST_TRIALS):
        judged = _plane(exposed, facts, task)
        if (found := judged.smallest) is None:
            return exposed, None
        V, D = round(found[0], 6), found[1]
        parameters = PTableParameters(D, V, task.js)
        try:
            table = solve(parameters)
        except (InfeasiblePTable, Mistakes) as problem:
            return exposed, f"the p-table of V {V:g} and D {D} cannot be computed: {problem}"
        law, last = PTableLaw(table), table.last_row
        recovered, worst = _attacked(parameters, facts, exposed)
        if recovered < task.limits.averaging:
            noise: dict[str, str | float | int] = {
                "kind": LawKind.CELL_KEY.value,
                "V": V,
                "D": D,
                "js": task.js,
            }
            change = law.row(last).shifted(-last)
            found_risks = replace(judge(law, change, D, exposed.ratio, facts, task.limits), success=recovered)
            return exposed, Proposal(noise, None, found_risks, table.notes)
        exposed = worst
    return exposed, f"averaging still recovers {exposed} with V = {V:g}: publish fewer tables of it"


def _certain(facts: Facts) -> ExposedCount | None:
    """A count that is at least so exposed, by an attack on part of the tables where all are many.

    Of a larger V small counts have a smaller share: no V is enough that this share of it excludes.
    """
    worst = None if facts.attack_on_parts is None else _worst(USUAL, facts.attack_on_parts)
    return None if worst is None else replace(worst[1], at_least=True)


def _attacked(
    parameters: PTableParameters, facts: Facts, exposed: ExposedCount
) -> tuple[float, ExposedCount]:
    """How likely averaging recovers the most exposed count under a p-table, and which count that is."""
    if facts.attack is None:
        table = solve(parameters)
        return success(table.variance(table.last_row), exposed.ratio), exposed
    return _worst(parameters, facts.attack) or (0.0, exposed)


def _worst(parameters: PTableParameters, attack: Attack) -> tuple[float, ExposedCount] | None:
    """How likely an attack recovers the most exposed count, and which count that is; None without counts.

    Its ratio is that at which noise of the p-table's variance gives the same probability by the normal law.
    """
    found = attack(parameters).exposed
    if not found:
        return None
    table, worst = solve(parameters), found[0]
    variance = table.variance(table.last_row)
    name = ", ".join(f"{variable}={code}" for variable, code in worst.cell.items()) or TOTAL
    ratio = min(worst.ratio, contour(worst.success) / variance) if worst.success < 1 else LEAST_RATIO
    return worst.success, ExposedCount(worst.counted, name, worst.t, max(ratio, LEAST_RATIO))


def _private(drawn: Line | None, facts: Facts, task: Task) -> Proposal | None:
    """Propose the smallest parameter with usable counts: more noise protects more."""
    if drawn is None or task.rule is None or task.parameters is None or not drawn.is_feasible:
        return None
    if drawn.least is None:
        return None
    parameter = _rounded_up(drawn.least.value)
    if drawn.most is not None and parameter > drawn.most.value:
        parameter = drawn.least.value
    total = _rounded_up(parameter / task.parameters[0])
    if drawn.most is not None and total * task.parameters[0] > drawn.most.value:
        total = parameter / task.parameters[0]
    law = law_of(task.rule, Fraction(str(parameter)))
    noise: dict[str, str | float | int] = {"kind": task.kind.value, drawn.law.name: total}
    change = law.row(0)
    return Proposal(noise, parameter, judge(law, change, None, facts.by_cell.ratio, facts, task.limits))


def _rounded_up(value: float) -> float:
    """Round up to a few digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.{DIGITS}g}")


def judge(
    law: Law, change: Pmf, bound: int | None, ratio: float, facts: Facts, limits: RiskLimits
) -> JudgedNoise:
    """Measure a law: its change of large counts, and of area totals where they are known."""
    return JudgedNoise(
        change.variance,
        success(change.variance, ratio),
        None if bound is None else reveal(change, facts.tuples).probability,
        law.row(1).at(1),
        beyond(change, limits.change),
        _distorted(law, facts),
    )


def _distorted(law: Law, facts: Facts) -> dict[float, float] | None:
    """The expected numbers of area totals whose relative error reaches each limit (Bach 2020, Figure 4)."""
    if facts.area_totals is None:
        return None
    losses = ExpectedLosses(PublishedLaw(law, keeps_zeros=True))
    totals, areas = np.unique(facts.area_totals[facts.area_totals > 0], return_counts=True)
    up, down = losses.tails(totals, totals, DISTORTIONS)
    return dict(zip(DISTORTIONS, (areas @ (up + down)).tolist(), strict=True))


def _broken(exposed: ExposedCount, facts: Facts, task: Task) -> tuple[Constraint, ...]:
    """The constraints that the declared V and D break; with data averaging is judged on their own p-table."""
    if task.declared is None:
        return ()
    V, D = task.declared
    programme = ProgrammeExposure(exposed.ratio, facts.tuples)
    here = plane(np.array([V]), np.array([D], dtype=np.int64), programme, task.limits, task.js)
    holds = {name: bool(obeyed.all()) for name, obeyed in here.holds.items()}
    if facts.attack is not None and holds[Constraint.PTABLE]:
        holds[Constraint.AVERAGING] = _resists(PTableParameters(D, V, task.js), facts, exposed, task)
    return tuple(name for name, obeyed in holds.items() if not obeyed)


def _resists(parameters: PTableParameters, facts: Facts, exposed: ExposedCount, task: Task) -> bool:
    """Whether a p-table keeps averaging within its limit; where part of the tables shows that not, they are enough."""
    limit = task.limits.averaging
    if facts.attack_on_parts is not None:
        found = _worst(parameters, facts.attack_on_parts)
        if found is not None and found[0] >= limit:
            return False
    return _attacked(parameters, facts, exposed)[0] < limit


@dataclass(frozen=True)
class PaperLine:
    """The closed forms of the paper for Laplace noise, for comparison with its Figures 2, 5 and 6."""

    averaging_same_noise: float
    averaging_fresh_noise: float
    areas: float | None
    reconstruction: float | None
    confidences: Mapping[str, float] = field(default_factory=dict)


def paper_line(facts: Facts, limits: RiskLimits) -> PaperLine:
    """Epsilon of a count: averaging succeeds above the first two, areas need at least the third (eq. 8, 12, 16)."""
    return PaperLine(
        laplace_epsilon(least_variance(facts.same_noise.ratio, limits.averaging)),
        laplace_epsilon(least_variance(facts.fresh_noise.ratio, limits.averaging)),
        epsilon_of_bound(limits.area_change, facts.areas, limits.area_confidence) if facts.areas else None,
        epsilon_of_reconstruction(facts.population, RECONSTRUCTION_CONFIDENCE) if facts.population else None,
        {
            "averaging": limits.averaging,
            "areas": limits.area_confidence,
            "reconstruction": RECONSTRUCTION_CONFIDENCE,
        },
    )


@dataclass(frozen=True)
class VarianceRange:
    """The smallest and largest feasible V of one D."""

    D: int
    V: tuple[float, float]


def ranges(found: Plane) -> Iterator[VarianceRange]:
    """The feasible variances of each D that has any."""
    for row, D in enumerate(found.D.tolist()):
        inside = found.V[found.feasible[row]]
        if len(inside):
            yield VarianceRange(D, (round(float(inside[0]), 6), round(float(inside[-1]), 6)))
