"""Resolves the ``[gates]`` section of a programme against its variables and noise; it owns the checks inside it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from discreet.schema.declared_protection import (
    DeclaredDifferencingGate,
    DeclaredGates,
    DeclaredReconstructionGate,
)
from discreet.schema.expression import alternatives
from discreet.schema.findings import Findings
from discreet.schema.gates import DifferencingGate, Gates, PosteriorGate, ReconstructionGate
from discreet.schema.noise import CellKeyNoise, Noise
from discreet.schema.rules import PopulationRule, Variable

OF_BOUNDED_NOISE = ("bound_revealed", "pinned_cells")
OF_PRIVATE_NOISE = ("epsilon", "delta")


def resolve_gates(
    declared: DeclaredGates,
    population: PopulationRule | None,
    variables: Mapping[str, Variable],
    noise: Noise | None,
    findings: Findings,
) -> Gates:
    """The gates of a programme; one that cannot be judged under its noise is a mistake, not a pass."""
    resolver = _Resolver(population, variables, findings)
    _check_noise(declared, noise, findings)
    posterior = declared.posterior
    return Gates(
        declared.averaging,
        declared.bound_revealed,
        declared.pinned_cells,
        _amount("epsilon", declared.epsilon, findings),
        _amount("delta", declared.delta, findings),
        declared.true_uniques,
        declared.true_attributes,
        PosteriorGate(**posterior.model_dump()) if posterior else None,
        resolver.differencing(declared.differencing) if declared.differencing else None,
        resolver.reconstruction(declared.reconstruction) if declared.reconstruction else None,
    )


def _check_noise(declared: DeclaredGates, noise: Noise | None, findings: Findings) -> None:
    if noise is None:
        return
    keyed = isinstance(noise, CellKeyNoise)
    for key in OF_PRIVATE_NOISE if keyed else ():
        if getattr(declared, key) is not None:
            findings.add(f"gates.{key}", "the cell key method has no such guarantee", "take the gate out")
    for key in () if keyed or getattr(noise, "bound", None) else OF_BOUNDED_NOISE:
        if getattr(declared, key) is not None:
            findings.add(f"gates.{key}", "this noise has no bound", "take the gate out")


def _amount(key: str, value: int | float | str | None, findings: Findings) -> Fraction | None:
    if value is None:
        return None
    try:
        amount = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        amount = Fraction(0)
    if amount <= 0:
        findings.add(f"gates.{key}", repr(value), 'give a positive number, or a fraction such as "1/3"')
    return amount


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
            place,
            tuple(declared.variables or ()),
            tuple(declared.quasi or ()),
            declared.errors,
            declared.areas,
            declared.seconds,
            declared.reconstructed,
            declared.reidentified,
        )

    def _depth(self, name: str, columns: tuple[str, ...]) -> int:
        return columns.index(self._variables[name].column)

    def _require_records(self, key: str) -> None:
        if self._population is None and "population" not in self._findings.broken_sections:
            self._findings.add(
                key, "there are no records to judge it by", "add [population] or take the gate out"
            )

    def _variable(self, key: str, name: str) -> Variable | None:
        found = self._variables.get(name)
        if found is None and name not in self._findings.broken_variables:
            self._findings.add(key, f"unknown variable {name!r}", alternatives(name, tuple(self._variables)))
        return found
