"""The ``[gates]`` section: limits that a release must meet, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from discreet.programme.filter import alternatives
from discreet.programme.noise import CellKeyNoise, NoiseRule, PrivateNoise
from discreet.programme.population import PopulationRule
from discreet.programme.section import Amount, Declared, Findings, Quota, Text, positive
from discreet.programme.variables import Variable

Within = Annotated[float, Field(gt=0, lt=1)]
Most = Annotated[int, Field(ge=0)]


class DeclaredPosteriorGate(Declared):
    """How certain a Bayesian adversary may become that a person is in a cell."""

    prior: Within = 0.5
    above: Within = 0.95
    share: Quota = 0.0
    largest: Annotated[int, Field(ge=1, le=1000)] = 10
    alone: bool = True


class DeclaredDifferencingGate(Declared):
    """What two geographies that do not nest may disclose by subtraction."""

    pairs: Annotated[list[Annotated[list[Text], Field(min_length=2, max_length=2)]], Field(min_length=1)]
    threshold: Annotated[int, Field(ge=2, le=10_000)] = 10
    above: Within = 0.68
    revealed: Most = 0


class DeclaredReconstructionGate(Declared):
    """How much of the microdata of sampled areas a solver may reconstruct."""

    place: Text | None = None
    variables: Annotated[list[Text], Field(min_length=1)] | None = None
    quasi: Annotated[list[Text], Field(min_length=1)] | None = None
    errors: dict[Text, Quota] = {}
    areas: Annotated[int, Field(ge=1, le=100_000)] = 20
    seconds: Annotated[float, Field(gt=0, le=86_400)] = 10.0
    reconstructed: Quota = 1.0
    reidentified: Quota = 1.0


class DeclaredSparsityGate(Declared):
    """How many cells of a cross-tabulation may be empty or small."""

    zeros: Quota | None = None
    ones: Quota | None = None
    ones_and_twos: Quota | None = None


class DeclaredGates(Declared):
    """The most that a release may disclose; one that discloses more is not published."""

    averaging: Within | None = None
    bound_revealed: Quota | None = None
    pinned_cells: Most | None = None
    epsilon: Amount | None = None
    delta: Amount | None = None
    true_uniques: Quota | None = None
    true_attributes: Quota | None = None
    sparsity: DeclaredSparsityGate | None = None
    posterior: DeclaredPosteriorGate | None = None
    differencing: DeclaredDifferencingGate | None = None
    reconstruction: DeclaredReconstructionGate | None = None
    corrections: Most | None = None


@dataclass(frozen=True)
class PosteriorGate:
    """At most this share of small cells may show a person with a posterior above ``above``."""

    prior: float
    above: float
    share: float
    largest: int  # true counts up to this are small
    alone: bool = True  # cells of one person count too, whom fixed zeros disclose whatever the noise


@dataclass(frozen=True)
class DifferencingGate:
    """At most this many differences below the threshold may be revealed with more than this probability."""

    pairs: tuple[tuple[Variable, Variable], ...]
    threshold: int
    above: float
    revealed: int


@dataclass(frozen=True, kw_only=True)
class ReconstructionGate:
    """At most these shares of the records of sampled areas may be reconstructed, and re-identified, beyond a guess."""

    place: str
    variables: tuple[str, ...]
    quasi: tuple[str, ...]  # what the intruder's file contains in addition to the place
    errors: Mapping[str, float]  # variable -> share of the intruder's file that is wrong
    areas: int
    seconds: float
    reconstructed: float
    reidentified: float


@dataclass(frozen=True, kw_only=True)
class SparsityGate:
    """The largest shares in any cross-tabulation: empty cells of the possible ones, small counts of the others."""

    zeros: float | None = None
    ones: float | None = None
    ones_and_twos: float | None = None


@dataclass(frozen=True, kw_only=True)
class Gates:
    """Everything declared; None is not limited."""

    averaging: float | None = None  # largest predicted success for any statistic
    bound_revealed: float | None = None  # largest probability that the tables reveal the bound of the noise
    pinned_cells: int | None = None  # most cells that bounds and margins pin
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    true_uniques: float | None = None  # largest share of published ones that are one person
    true_attributes: float | None = None  # largest share of apparent attribute disclosures that are true
    sparsity: SparsityGate | None = None
    posterior: PosteriorGate | None = None
    differencing: DifferencingGate | None = None
    reconstruction: ReconstructionGate | None = None
    corrections: int | None = None  # most persons that this release and an earlier one may expose together

    @property
    def declared(self) -> tuple[str, ...]:
        """The names of the declared gates."""
        return tuple(item.name for item in fields(self) if getattr(self, item.name) is not None)


NO_GATES = Gates()


OF_BOUNDED_NOISE = ("bound_revealed", "pinned_cells")
OF_PRIVATE_NOISE = ("epsilon", "delta")
# Judged by the programme and the law of its noise alone. Every other gate looks at the data or at what was drawn for
# them: that a release passed it is then something about the data that no epsilon accounts for.
BESIDE_A_GUARANTEE = ("averaging", "epsilon", "delta")


def resolve_gates(
    declared: DeclaredGates,
    population: PopulationRule | None,
    variables: Mapping[str, Variable],
    noise: NoiseRule | None,
    findings: Findings,
    unclaimed: str = ', or set claim = "none" in [noise]',
) -> Gates:
    """The gates of a programme; one that cannot be checked under its noise is a mistake, not a pass.

    ``unclaimed`` is how the noise is declared without a guarantee, empty where it always has one.
    """
    resolver = _Resolver(population, variables, findings)
    _check_noise(declared, noise, findings, unclaimed)
    return Gates(
        averaging=declared.averaging,
        bound_revealed=declared.bound_revealed,
        pinned_cells=declared.pinned_cells,
        epsilon=_amount("epsilon", declared.epsilon, findings),
        delta=_amount("delta", declared.delta, findings),
        true_uniques=declared.true_uniques,
        true_attributes=declared.true_attributes,
        sparsity=_sparsity(declared.sparsity, findings) if declared.sparsity else None,
        posterior=_posterior(declared.posterior, findings) if declared.posterior else None,
        differencing=resolver.differencing(declared.differencing) if declared.differencing else None,
        reconstruction=resolver.reconstruction(declared.reconstruction) if declared.reconstruction else None,
        corrections=declared.corrections,
    )


def _check_noise(
    declared: DeclaredGates, noise: NoiseRule | None, findings: Findings, unclaimed: str
) -> None:
    if noise is None:
        return
    keyed = isinstance(noise, CellKeyNoise)
    for key in OF_PRIVATE_NOISE if keyed else ():
        if getattr(declared, key) is not None:
            findings.add(f"gates.{key}", "the cell key method has no such guarantee", "remove the gate")
    for key in () if keyed or getattr(noise, "bound", None) else OF_BOUNDED_NOISE:
        if getattr(declared, key) is not None:
            findings.add(f"gates.{key}", "this noise has no bound", "remove the gate")
    if isinstance(noise, PrivateNoise):
        _check_guarantee(declared, noise, findings)
    for item in fields(Gates) if noise.is_guaranteed else ():
        if item.name not in BESIDE_A_GUARANTEE and getattr(declared, item.name) is not None:
            remedy = (
                "passing it shows something about the data that epsilon does not cover: leave it out and see "
                f"`discreet audit`, which only the office reads{unclaimed}"
            )
            findings.add(f"gates.{item.name}", "looks at the data beside a privacy guarantee", remedy)


def _sparsity(declared: DeclaredSparsityGate, findings: Findings) -> SparsityGate:
    if not declared.model_fields_set:
        remedy = "give zeros, ones or ones_and_twos, such as { ones_and_twos = 0.5 }"
        findings.add("gates.sparsity", "limits nothing", remedy)
    return SparsityGate(**declared.model_dump())


def _posterior(declared: DeclaredPosteriorGate, findings: Findings) -> PosteriorGate:
    if declared.above < declared.prior:
        remedy = f"give a number from gates.posterior.prior, {declared.prior:g}, to below 1"
        findings.add("gates.posterior.above", f"{declared.above:g}", remedy)
    return PosteriorGate(**declared.model_dump())


def _check_guarantee(declared: DeclaredGates, noise: PrivateNoise, findings: Findings) -> None:
    """A gate on epsilon or delta needs a guarantee that is stated in them."""
    for key in OF_PRIVATE_NOISE:
        if getattr(declared, key) is not None and not noise.is_guaranteed:
            findings.add(f"gates.{key}", "no guarantee is claimed", "remove the gate")
        elif getattr(declared, key) is not None and noise.is_gaussian and not noise.delta:
            remedy = "declare noise.delta, at which rho has an epsilon, or remove the gate"
            findings.add(f"gates.{key}", "the guarantee is stated in rho", remedy)


def _amount(key: str, value: Amount | None, findings: Findings) -> Fraction | None:
    return None if value is None else positive(f"gates.{key}", value, findings)


class _Resolver:
    def __init__(
        self, population: PopulationRule | None, variables: Mapping[str, Variable], findings: Findings
    ) -> None:
        self._population, self._variables, self._findings = population, variables, findings

    def differencing(self, declared: DeclaredDifferencingGate) -> DifferencingGate:
        """Pairs of variables, each known and different."""
        self._require_records("gates.differencing")
        pairs = []
        for first, second in declared.pairs:
            if first == second:
                self._findings.add("gates.differencing.pairs", f"{first} twice", "name two geographies")
            a, b = (self._variable("gates.differencing.pairs", name) for name in (first, second))
            if a and b:
                pairs.append((a, b))
        return DifferencingGate(tuple(pairs), declared.threshold, declared.above, declared.revealed)

    def reconstruction(self, declared: DeclaredReconstructionGate) -> ReconstructionGate:
        """A place and what is reconstructed there; by default the finest declared place and all other variables."""
        key = "gates.reconstruction"
        self._require_records(key)
        columns = self._population.geography if self._population else ()
        placed = [name for name, one in self._variables.items() if one.column in columns]
        place = declared.place or (max(placed, key=lambda name: self._depth(name, columns)) if placed else "")
        if not place:
            self._findings.add(
                f"{key}.place", "no variable is a place", "name the variable whose areas to attack"
            )
        elif self._variable(f"{key}.place", place) is None:
            place = ""
        named = [*(declared.variables or ()), *(declared.quasi or ()), *declared.errors]
        for name in dict.fromkeys(named):
            self._variable(f"{key}.variables", name)
        return ReconstructionGate(
            place=place,
            variables=tuple(declared.variables or ()),
            quasi=tuple(declared.quasi or ()),
            errors=declared.errors,
            areas=declared.areas,
            seconds=declared.seconds,
            reconstructed=declared.reconstructed,
            reidentified=declared.reidentified,
        )

    def _depth(self, name: str, columns: tuple[str, ...]) -> int:
        return columns.index(self._variables[name].column)

    def _require_records(self, key: str) -> None:
        if self._population is None and "population" not in self._findings.broken_sections:
            self._findings.add(key, "no records to check it with", "add [population] or remove the gate")

    def _variable(self, key: str, name: str) -> Variable | None:
        found = self._variables.get(name)
        if found is None and name not in self._findings.broken_variables:
            self._findings.add(key, f"unknown variable {name!r}", alternatives(name, tuple(self._variables)))
        return found
