"""A programme: everything a publication declares, resolved, checked and described."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from discreet.errors import Mistakes, Problem
from discreet.maths.noise.ptable_solver import PTableParameters
from discreet.programme.attributes import Attributes
from discreet.programme.codelist import Codelist
from discreet.programme.consistent import check_consistent
from discreet.programme.cube import Cube
from discreet.programme.cubes import CubeResolver, ReadyMade, told_apart, without_keys
from discreet.programme.engine import EMBEDDED, EngineRule, resolve_engine
from discreet.programme.filter import Filter
from discreet.programme.gates import NO_GATES, Gates, resolve_gates
from discreet.programme.hierarchical import DeclaredHierarchical, HierarchyRule, resolve_hierarchy
from discreet.programme.labels import NO_LABELS, Labels, resolve_labels
from discreet.programme.noise import CellKeyNoise, Draw, NoiseRule, PrivateNoise, check_sample, resolve_noise
from discreet.programme.population import PopulationRule, Unit, resolve_population
from discreet.programme.reading import DeclaredProgramme, read_declared
from discreet.programme.release import (
    Disclosure,
    Limits,
    ReleaseFormat,
    ReleaseRule,
    resolve_limits,
    resolve_release,
)
from discreet.programme.section import Findings
from discreet.programme.serve import DEFAULT_SERVE, ServeRule, resolve_serve
from discreet.programme.sources import Source
from discreet.programme.split import with_shown
from discreet.programme.swap import SwapRule, check_compatible, resolve_swap
from discreet.programme.variables import Variable, resolve_variables, standard_tables

__all__ = [
    "Disclosure",
    "Limits",
    "PopulationRule",
    "Programme",
    "ReadyMade",
    "ReleaseFormat",
    "ReleaseRule",
    "Unit",
    "Variable",
    "load_declaration",
    "load_programme",
]


@dataclass(frozen=True, kw_only=True)
class Programme:
    """The whole declared publication."""

    path: Path
    name: str
    population: PopulationRule | None  # None where every cube is ready-made
    variables: Mapping[str, Variable]
    cubes: tuple[Cube, ...]
    ready_made: Mapping[str, ReadyMade]  # cube id -> its counts
    structural_zeros: tuple[Filter, ...]
    noise: NoiseRule
    release: ReleaseRule
    limits: Limits
    swap: SwapRule | None = None
    gates: Gates = NO_GATES
    serve: ServeRule = DEFAULT_SERVE
    labels: Labels = NO_LABELS
    engine: EngineRule = EMBEDDED

    @property
    def places(self) -> tuple[str, ...]:
        """The variables that are places."""
        columns = self.population.geography if self.population else ()
        return tuple(v.name for v in self.variables.values() if v.column in columns or v.place)

    @property
    def hierarchy(self) -> HierarchyRule | None:
        """The tree of measurements that tables are fitted to, where noise is hierarchical."""
        return self.noise.hierarchy if isinstance(self.noise, PrivateNoise) else None

    @property
    def adds_up(self) -> bool:
        """Whether published counts are fitted to noisy ones, so that all totals add up."""
        return self.release.consistent or self.hierarchy is not None

    def canonical(self) -> dict[str, Any]:
        """Describe everything declared that affects the result, as JSON with a stable order.

        A name or agency that only follows from the folder is left out: a programme that was moved is the same.
        """
        name, agency = self.release.declared
        swap = {} if self.swap is None else {"swap": self.swap.canonical()}
        title = {"title": self.release.title} if self.release.title else {}
        labels = {"labels": self.labels.canonical()} if self.labels else {}
        consistent = {"consistent": True} if self.release.consistent else {}
        split = {"levels": "split"} if self.release.split else {}
        return {
            "population": None if self.population is None else _population(self.population),
            "variables": {name: _variable(self.variables[name]) for name in sorted(self.variables)},
            "cubes": [_cube(cube, self.ready_made.get(cube.id)) for cube in self.cubes],
            "structural_zeros": sorted(rule.canonical for rule in self.structural_zeros),
            **swap,
            "noise": _noise(self.noise),
            "release": {
                "name": name,
                **title,
                "agency": agency,
                "version": self.release.version,
                "formats": [form.value for form in self.release.formats],
                "disclose": self.release.disclose.value,
                **consistent,
                **split,
            },
            **labels,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Supplied:
    """What a caller has in memory in place of the files that a programme names."""

    sources: Mapping[str, Source] = field(default_factory=dict)  # unit -> its records
    codelists: Mapping[str, Codelist] = field(default_factory=dict)  # variable -> its codes


NOTHING_SUPPLIED = Supplied()


@dataclass(frozen=True)
class Inspected:
    """Every mistake in a programme file, and its valid parts: good enough to check data, not to publish."""

    problems: tuple[Problem, ...]
    sound: Programme | None  # None where no noise rule could be read
    absent: frozenset[Problem] = frozenset()  # the problems that are only missing data


def load_programme(path: Path) -> Programme:
    """Read and check a programme file; every mistake in it is reported at once."""
    inspected = inspect_programme(path)
    if inspected.sound is None or inspected.problems:
        raise Mistakes(inspected.problems)
    return inspected.sound


def load_declaration(path: Path) -> Programme:
    """Read a programme file for a forecast, for which its data are not needed; any other mistake is reported.

    Units and ready-made counts whose data are absent are left out, so it must not be used to publish.
    """
    inspected = inspect_programme(path)
    problems = [problem for problem in inspected.problems if problem not in inspected.absent]
    if inspected.sound is None or problems:
        raise Mistakes(problems)
    return inspected.sound


def inspect_programme(path: Path) -> Inspected:
    """Read a programme file and collect its mistakes."""
    findings = Findings(Path(path))
    try:
        declared = read_declared(findings)
    except Mistakes as mistakes:
        return Inspected(mistakes.problems, None)
    return inspect_declared(declared, findings)


def inspect_declared(
    declared: DeclaredProgramme, findings: Findings, supplied: Supplied = NOTHING_SUPPLIED
) -> Inspected:
    """Resolve what is declared and collect its mistakes; what is supplied in memory replaces files."""
    path = findings.path
    population = resolve_population(declared.population, findings, supplied.sources)
    tables = standard_tables(declared.standard, findings)
    own = declared.release.language
    variables = resolve_variables(
        declared.variables, declared.standard, tables, findings, supplied.codelists, own
    )
    labels = resolve_labels(
        declared.variables, declared.release, declared.standard is not None, variables, findings
    )
    swap = resolve_swap(declared.swap, population, variables, findings)
    noise = resolve_noise(declared.noise, findings)
    release, limits = resolve_release(declared.release, findings), resolve_limits(declared.limits)
    resolver = CubeResolver(
        variables=variables,
        population=population,
        cells=limits.cells,
        labels=labels,
        findings=findings,
        language=release.language,
    )
    cubes, ready_made = resolver.cubes(declared.cubes, tables)
    zeros = resolver.structural_zeros(declared.structural_zeros)
    check_compatible(swap, noise, zeros, population, variables, findings)
    always = {"unclaimed": ""} if isinstance(declared.noise, DeclaredHierarchical) else {}
    gates = resolve_gates(declared.gates, population, variables, noise, findings, **always)
    serve = resolve_serve(declared.serve, variables, noise, findings)
    engine = resolve_engine(declared.engine, findings)
    if isinstance(declared.noise, DeclaredHierarchical):
        noise = _with_hierarchy(declared.noise, noise, variables, cubes, zeros, findings)
        _check_hierarchical(release, ready_made, findings)
    if isinstance(noise, PrivateNoise):
        cubes = told_apart(cubes, ready_made)
        if noise.draw is not Draw.PARTICIPANTS:
            ready_made = without_keys(ready_made)
    cubes = _with_shown(cubes, noise, findings)
    check_consistent(release, noise, cubes, gates, findings)
    check_sample(population, noise, findings)
    problems = findings.mistakes().problems
    if noise is None:
        return Inspected(problems, None)
    if isinstance(noise, PrivateNoise):
        noise = replace(noise, attributes=attributes_of(variables, population))
    sound = Programme(
        path=path,
        name=release.name,
        population=population,
        variables=variables,
        cubes=cubes,
        ready_made=ready_made,
        structural_zeros=zeros,
        noise=noise,
        release=release,
        limits=limits,
        swap=swap,
        gates=gates,
        serve=serve,
        labels=labels,
        engine=engine,
    )
    return Inspected(problems, sound, frozenset(findings.absent))


def _with_hierarchy(
    declared: DeclaredHierarchical,
    noise: NoiseRule | None,
    variables: Mapping[str, Variable],
    cubes: tuple[Cube, ...],
    zeros: tuple[Filter, ...],
    findings: Findings,
) -> NoiseRule | None:
    """The noise with its strategy; None where that is not sound, so that nothing can be drawn by another rule."""
    if not isinstance(noise, PrivateNoise) or set(findings.problems) - findings.absent:
        return None
    rule = resolve_hierarchy(declared, noise.budget.total, variables, cubes, zeros, findings)
    return None if rule is None else replace(noise, hierarchy=rule)


def _check_hierarchical(
    release: ReleaseRule, ready_made: Mapping[str, ReadyMade], findings: Findings
) -> None:
    """What hierarchical noise excludes elsewhere in the file."""
    if release.consistent:
        remedy = "leave it out: hierarchical tables always add up"
        findings.add("release.consistent", "true beside hierarchical noise", remedy)
    for cube in ready_made:
        remedy = "give the records: every level is measured from them"
        findings.add(f"cube {cube}", "ready-made counts beside hierarchical noise", remedy)


def attributes_of(variables: Mapping[str, Variable], population: PopulationRule | None) -> Attributes:
    """Whose the variables and counted columns of a programme are."""
    found = {name: variable.attribute for name, variable in variables.items()}
    if population is None:
        return Attributes(found)
    return Attributes(found, population.flags, population.fixed_families)


def _with_shown(cubes: tuple[Cube, ...], noise: NoiseRule | None, findings: Findings) -> tuple[Cube, ...]:
    """The cubes with what of each is published, once everything that they are made of is sound."""
    if not isinstance(noise, PrivateNoise) or set(findings.problems) - findings.absent:
        return cubes
    try:
        return with_shown(noise.budget, cubes)
    except Mistakes as mistakes:
        for problem in mistakes.problems:
            named = (
                problem.key if problem.key.startswith(("noise.", "cube ")) else f"noise.split, {problem.key}"
            )
            findings.add(named, problem.value, problem.remedy)
    return cubes


def _population(rule: PopulationRule) -> dict[str, Any]:
    return {
        "units": {name: unit.source.describe() for name, unit in sorted(rule.units.items())},
        "ids": dict(sorted(rule.ids.items())),
        "geography": list(rule.geography),
        "record_key": rule.record_key,
        **({} if rule.sample is None else {"sample": {k: str(v) for k, v in asdict(rule.sample).items()}}),
    }


def _variable(variable: Variable) -> dict[str, Any]:
    tree = variable.codelist
    return {
        "column": variable.column,
        "units": None if variable.units is None else list(variable.units),
        "codelist": _digest([tree.codes, tree.parents, tree.labels]),
        "breakdowns": {name: _digest(axis.codes) for name, axis in sorted(variable.breakdowns.items())},
        **({} if variable.coding.is_plain else {"coding": variable.coding.canonical()}),
    }


def _cube(cube: Cube, ready: ReadyMade | None) -> dict[str, Any]:
    return {
        "id": cube.id,
        "title": str(cube.title),
        "unit": cube.unit,
        "axes": [f"{axis.variable}.{axis.name}" for axis in cube.axes],
        "base": cube.base.canonical if cube.base else None,
        "count": cube.count,
        "weight": cube.weight,
        "counts": None
        if ready is None
        else {**ready.source.describe(), "count": ready.count, "key": ready.key, "modulus": ready.modulus},
    }


def _noise(noise: NoiseRule) -> dict[str, Any]:
    if not isinstance(noise, CellKeyNoise):
        declared: dict[str, Any] = json.loads(json.dumps(asdict(noise), default=str))
        declared.pop("allow_weak")  # it changes nothing that is published
        if noise.hierarchy is None:
            declared.pop("hierarchy")
        elif noise.hierarchy.bounds is not None:
            declared["hierarchy"]["bounds"].pop("path")  # its digest is what matters
        return declared
    table: Any = noise.table.name if isinstance(noise.table, Path) else _parameters(noise.table)
    return {"kind": "cell-key", "table": table, "keys": noise.keys.value}


def _parameters(table: PTableParameters) -> dict[str, Any]:
    return {
        "V": table.V,
        "D": table.D,
        "js": table.js,
        "pstay": table.pstay,
        "variance": table.variance.value,
    }


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
