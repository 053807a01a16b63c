"""Which noises a forecast compares: the declared one, the cell key method, and what laws a budget could buy.

It owns the choice of their bounds and budgets; what they do to cells is forecast_laws'.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from discreet.errors import mistake
from discreet.maths.concentrated import epsilon_of_rho
from discreet.maths.exponents import Symmetric
from discreet.maths.laws import AdditiveLaw, LawKind, exact
from discreet.maths.lookup import Order
from discreet.maths.ptable_solver import PTableParameters
from discreet.perturb.budget import law_of, noise_parameters, reach
from discreet.perturb.choose import cell_key_mechanism
from discreet.pipeline.forecast import Candidate, Unavailable
from discreet.schema.cube import Cube
from discreet.schema.noise import BudgetRule, CellKeyNoise, Claim, Draw, KeptZeros, PrivateNoise
from discreet.schema.programme import Programme

EPSILONS = (Fraction(1), Fraction(5), Fraction(20))
DELTA = Fraction(1, 10**9)
LARGEST_EPSILON = 500  # e^epsilon stays a float
LARGEST_BOUND = 100_000  # as programme files allow
USUAL = PTableParameters(D=5, V=2.0, js=0)
RHO_DIGITS = 4  # of a rho that is proposed
NO_KEY = bytes(32)  # the law of a lookup does not depend on the order that a key gives it

Uses = Mapping[tuple[str, Fraction], int]  # (unit, noise parameter) -> number of cross-tabulations


def candidates_for(programme: Programme, epsilons: Sequence[Fraction] = EPSILONS) -> tuple[Candidate, ...]:
    """The declared noise first, then the usual cell key method, then each law at each budget."""
    return tuple(
        replace(one, notes=(*one.notes, *_weights(programme, one))) for one in _every(programme, epsilons)
    )


def read_epsilons(text: str) -> tuple[Fraction, ...]:
    """Different budgets in ascending order, from numbers or fractions with commas."""
    found = {exact("--epsilon", part.strip()) for part in text.split(",") if part.strip()}
    if not found or not all(0 < epsilon <= LARGEST_EPSILON for epsilon in found):
        remedy = f"give budgets above 0 and at most {LARGEST_EPSILON} with commas, such as 1,5,20"
        raise mistake("", "--epsilon", repr(text), remedy)
    return tuple(sorted(found))


def _every(programme: Programme, epsilons: Sequence[Fraction]) -> Iterator[Candidate]:
    noise = programme.noise
    yield declared(programme)
    if not (isinstance(noise, CellKeyNoise) and noise.table == USUAL):
        yield _cell_key("cell-key, V 2, D 5", CellKeyNoise(USUAL, Order.PLAIN))
    template = (
        noise if isinstance(noise, PrivateNoise) else PrivateNoise(LawKind.GEOMETRIC, BudgetRule(DELTA))
    )
    unit = replace(template, kind=LawKind.GEOMETRIC, budget=replace(template.budget, total=Fraction(1)))
    uses = _uses(unit, programme.cubes)
    for epsilon in epsilons:
        at = {(name, parameter * epsilon): times for (name, parameter), times in uses.items()}
        yield from _bought(template, epsilon, at)


def declared(programme: Programme) -> Candidate:
    """The noise that the programme declares; a p-table file is read."""
    noise = programme.noise
    if isinstance(noise, CellKeyNoise):
        return _cell_key("declared: cell-key", noise)
    budget = f"{'rho' if noise.is_gaussian else 'epsilon'} {shown(noise.budget.total)}"
    return Candidate(f"declared: {noise.kind.value}, {budget}", noise, tuple(_excess(programme, noise)))


def shown(number: Fraction) -> str:
    """A budget as a short decimal."""
    return f"{float(number):.6g}"


def _cell_key(name: str, noise: CellKeyNoise) -> Candidate:
    made = cell_key_mechanism(noise, NO_KEY)
    return Candidate(name, made.lookup, made.notes)


def _excess(programme: Programme, noise: PrivateNoise) -> Iterator[str]:
    if noise.bound is None or noise.claim is Claim.NONE:
        return
    spent = programme_delta(noise, _uses(noise, programme.cubes))
    if spent > noise.delta:
        yield f"truncation costs a delta of {spent:.3g}, {float(noise.delta):.3g} is declared: protect refuses it"


def _weights(programme: Programme, candidate: Candidate) -> Iterator[str]:
    weighted = [cube.id for cube in programme.cubes if cube.weight]
    if weighted and isinstance(candidate.noise, PrivateNoise):
        yield f"weights in {', '.join(weighted)}: protect refuses them with such noise"


def _bought(template: PrivateNoise, epsilon: Fraction, uses: Uses) -> Iterator[Candidate]:
    """What one budget buys: each law with what the template says of neighbours, splits and post-processing."""
    told, budget = f"epsilon {shown(epsilon)}", replace(template.budget, total=epsilon)
    plain = replace(
        template,
        kind=LawKind.GEOMETRIC,
        budget=budget,
        bound=None,
        delta=Fraction(0),
        draw=Draw.DESCRIPTION,
        keep_zeros=KeptZeros.STRUCTURAL,
        claim=Claim.DP,
    )
    yield Candidate(f"geometric, {told}", plain)
    for kind in (LawKind.LAPLACE, LawKind.NORMAL):
        yield _truncated(replace(plain, kind=kind, delta=DELTA), uses, told)
    rho = rho_for(epsilon, DELTA)
    gaussian = replace(plain, kind=LawKind.DISCRETE_GAUSSIAN, budget=replace(budget, total=rho), delta=DELTA)
    yield Candidate(f"discrete-gaussian, {told}", gaussian, (f"rho {shown(rho)} at delta {float(DELTA):g}",))


def _truncated(rule: PrivateNoise, uses: Uses, told: str) -> Candidate:
    name, bound = f"{rule.kind.value}, {told}", bound_for(rule, uses, DELTA)
    if bound is None:
        reason = f"a delta of {float(DELTA):g} needs a bound above {LARGEST_BOUND}"
        return Candidate(name, Unavailable(reason))
    return Candidate(name, replace(rule, bound=bound), (f"bound {bound}, delta {float(DELTA):g}",))


def bound_for(rule: PrivateNoise, uses: Uses, delta: Fraction) -> int | None:
    """The smallest bound whose truncation costs less than delta over the programme; None where none is allowed."""
    low, high = 0, LARGEST_BOUND + 1
    while high - low > 1:
        middle = (low + high) // 2
        if programme_delta(replace(rule, bound=middle), uses) < delta:
            high = middle
        else:
            low = middle
    return high if high <= LARGEST_BOUND else None


def _uses(rule: PrivateNoise, cubes: Sequence[Cube]) -> Uses:
    return Counter(
        (signature.unit, parameter) for signature, parameter in noise_parameters(rule, cubes).items()
    )


def programme_delta(rule: PrivateNoise, uses: Uses) -> float:
    """What truncation at m costs over the programme at its epsilon; floats, where NoisePlan.delta certifies.

    A cell in which neighbours differ by k costs Pr[v > m - k]: the values that only one of the two can have, for
    inside no ratio exceeds e^(k epsilon). It grows faster than k: to differ by the most in the fewest cells is worst.
    """
    total = 0.0
    for (unit, parameter), times in uses.items():
        touched = reach(unit, rule)
        total += times * touched.l1 / touched.largest * _outermost(rule, parameter, touched.largest)
    return total


def _outermost(rule: PrivateNoise, parameter: Fraction, k: int) -> float:
    """Pr[v > m - k] of a truncated law; 0 of others."""
    law = law_of(rule, parameter)
    if not isinstance(law, AdditiveLaw) or not isinstance(law.exponents, Symmetric) or law.bound is None:
        return 0.0
    v = np.arange(-law.bound, law.bound + 1, dtype=np.float64)
    p = np.exp(-(float(law.exponents.linear) * np.abs(v) + float(law.exponents.quadratic) * v * v))
    return float(p[:k].sum() / p.sum())


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, cut to a few digits, that implies at most this epsilon at this delta."""
    low, high = -20.0, math.log10(float(epsilon))  # rho <= epsilon(rho)
    for _ in range(50):
        middle = (low + high) / 2
        if epsilon_of_rho(Fraction(10**middle), delta) <= epsilon:
            low = middle
        else:
            high = middle
    unit = Fraction(10) ** (math.floor(low) - RHO_DIGITS + 1)
    return math.floor(Fraction(10**low) / unit) * unit
