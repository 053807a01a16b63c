"""Laws by name and parameters, as users declare them: which parameters a kind has, and every mistake at once.

The formulas are in ``additive``, ``hellinger`` and ``exponential``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields

from discreet.errors import Mistakes, Problem, mistake
from discreet.maths.noise.additive import (
    AdditiveLaw,
    LawKind,
    Number,
    SquareSensitivity,
    discrete_gaussian,
    discrete_gaussian_of_sigma,
    discrete_laplace,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from discreet.maths.noise.exponential import UtilityLaw, UtilityTable, utility_law
from discreet.maths.noise.hellinger import HellingerLaw, PTableLaw, hellinger
from discreet.maths.noise.ptable_solver import PTableParameters, solve

NEEDED: dict[LawKind, tuple[str, ...]] = {
    LawKind.LAPLACE: ("epsilon", "bound"),
    LawKind.NORMAL: ("epsilon", "bound"),
    LawKind.GEOMETRIC: ("epsilon",),
    LawKind.DISCRETE_GAUSSIAN: (),
    LawKind.HELLINGER: ("epsilon",),
    LawKind.EXPONENTIAL: ("epsilon", "utility"),
    LawKind.UNIFORM: ("bound",),
    LawKind.CELL_KEY: ("D", "V"),
}
OPTIONAL: dict[LawKind, tuple[str, ...]] = {
    LawKind.NORMAL: ("sensitivity",),
    LawKind.DISCRETE_GAUSSIAN: ("rho", "sigma"),
    LawKind.CELL_KEY: ("js",),
}
REMEDIES = {
    (
        LawKind.DISCRETE_GAUSSIAN,
        "epsilon",
    ): "Gaussian noise has no pure epsilon: give rho or sigma, or take geometric",
    (
        LawKind.GEOMETRIC,
        "bound",
    ): "take laplace: a bound makes it (epsilon, delta)-private, and its delta is reported",
    (LawKind.DISCRETE_GAUSSIAN, "bound"): "take normal for bounded noise",
}
MISSING = {
    (
        LawKind.LAPLACE,
        "bound",
    ): "give the largest change, or take geometric, which has none and needs no delta",
    (LawKind.NORMAL, "bound"): "give the largest change, or take discrete-gaussian, which has none",
    (LawKind.EXPONENTIAL, "utility"): "give the file of utilities, by count or by change",
}


def implied_kind(given: Collection[str]) -> LawKind | None:
    """The only kind that some parameters can mean by themselves."""
    names = frozenset(given)
    if names in ({"rho"}, {"sigma"}):
        return LawKind.DISCRETE_GAUSSIAN
    if names == {"epsilon"}:
        return LawKind.GEOMETRIC
    return LawKind.CELL_KEY if names and names <= {"D", "V", "js"} else None


@dataclass(frozen=True)
class NoiseParameters:
    """The noise that a user declares; each kind takes some of the parameters and refuses the others."""

    kind: LawKind
    epsilon: Number | None = None
    bound: int | None = None
    rho: Number | None = None
    sigma: Number | None = None
    sensitivity: SquareSensitivity | None = None
    D: int | None = None
    V: float | None = None
    js: int | None = None
    utility: UtilityTable | None = None

    def given(self) -> dict[str, object]:
        """The parameters that were given."""
        pairs = ((item.name, getattr(self, item.name)) for item in fields(self) if item.name != "kind")
        return {name: value for name, value in pairs if value is not None}


def named_law(declared: NoiseParameters) -> AdditiveLaw | HellingerLaw | UtilityLaw | PTableLaw:
    """Make the law, or raise every mistake in its parameters."""
    problems = tuple(_problems(declared))
    if problems:
        raise Mistakes(problems)
    if declared.kind is LawKind.CELL_KEY:
        return PTableLaw(solve(PTableParameters(declared.D or 0, declared.V or 0.0, declared.js or 0)))
    if declared.kind is LawKind.HELLINGER:
        return hellinger(declared.epsilon or 0)
    if declared.utility is not None:
        return utility_law(declared.epsilon or 0, declared.utility)
    return _additive(declared)


def measure_of(kind: LawKind) -> str:
    """In what the budget of a kind is counted: rho for the discrete Gaussian, epsilon for the others."""
    return "rho" if kind is LawKind.DISCRETE_GAUSSIAN else "epsilon"


def budgeted_law(
    kind: LawKind, amount: Number, bound: int | None, utility: UtilityTable | None = None
) -> AdditiveLaw | HellingerLaw | UtilityLaw:
    """The law of a kind by the epsilon (or rho) that a change of one costs, with its bound or utility if it has one."""
    if kind is LawKind.EXPONENTIAL and utility is not None:
        return utility_law(amount, utility)
    match kind:
        case LawKind.LAPLACE:
            return truncated_laplace(amount, bound or 0)
        case LawKind.NORMAL:
            return truncated_normal(amount, bound or 0)
        case LawKind.DISCRETE_GAUSSIAN:
            return discrete_gaussian(amount)
        case LawKind.HELLINGER:
            return hellinger(amount)
        case LawKind.GEOMETRIC:
            return discrete_laplace(amount)
    raise mistake("", "kind", kind.value, "name a law that has a budget")


def _additive(declared: NoiseParameters) -> AdditiveLaw:
    epsilon, bound = declared.epsilon or 0, declared.bound or 0
    match declared.kind:
        case LawKind.LAPLACE:
            return truncated_laplace(epsilon, bound)
        case LawKind.NORMAL:
            return truncated_normal(epsilon, bound, declared.sensitivity or SquareSensitivity.EXACT)
        case LawKind.GEOMETRIC:
            return discrete_laplace(epsilon)
        case LawKind.UNIFORM:
            return uniform(bound)
    return (
        discrete_gaussian(declared.rho)
        if declared.rho is not None
        else discrete_gaussian_of_sigma(declared.sigma or 0)
    )


def _problems(declared: NoiseParameters) -> Iterator[Problem]:
    kind, given = declared.kind, declared.given()
    if kind not in NEEDED:
        yield Problem("", "kind", kind.value, f"choose from {', '.join(NEEDED)}")
        return
    allowed = (*NEEDED[kind], *OPTIONAL.get(kind, ()))
    for name in NEEDED[kind]:
        if name not in given:
            yield Problem("", name, f"missing for {kind.value} noise", MISSING.get((kind, name), "give it"))
    for name, value in given.items():
        if name not in allowed:
            remedy = REMEDIES.get((kind, name), f"leave it out: {kind.value} noise has {', '.join(allowed)}")
            yield Problem("", name, str(value), remedy)
    if kind is LawKind.DISCRETE_GAUSSIAN and ("rho" in given) == ("sigma" in given):
        yield Problem("", "rho or sigma", "both" if "rho" in given else "none", "give one of them")
