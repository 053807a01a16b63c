"""The ``[swap]`` section: the rule of targeted record swapping and its checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from discreet.programme.codelist import Breakdown, breakdown
from discreet.programme.filter import Filter, alternatives, mentioned, parse_filter
from discreet.programme.noise import NoiseRule
from discreet.programme.population import PopulationRule
from discreet.programme.section import Declared, Findings, Quota, Text, text_or_table
from discreet.programme.variables import Variable

Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


class DeclaredComposition(Declared):
    """Similarity by the members of a household, counted by a cross of breakdowns."""

    composition: list[Text]


class DeclaredQuotas(Declared):
    """The most that may be exchanged, by level and in each region of a level."""

    levels: dict[str, Quota] = {}
    regions: dict[str, Quota] = {}


AlikeEntry = Annotated[
    Annotated[Text, Tag("|text")] | Annotated[DeclaredComposition, Tag("|table")],
    Discriminator(text_or_table),
]


class DeclaredSwap(Declared):
    """Targeted record swapping of households before anything is counted."""

    k: Annotated[int, Field(ge=2, le=1_000_000)] = 3
    risk: list[Text] = []
    similar: Annotated[list[Annotated[list[AlikeEntry], Field(min_length=1)]], Field(min_length=1)]
    rate: Share = 0.0
    cap: Quota | None = None
    levels: Annotated[list[Text], Field(min_length=1)] | None = None
    donors: Literal["risk", "uniform"] = "risk"
    inside_parent: bool = True
    carry: list[Text] = []
    exclude: Text | None = None
    risk_column: Text | None = None
    exclude_zero_risk: bool = False
    quotas: DeclaredQuotas = Field(default_factory=DeclaredQuotas)


class Donors(Enum):
    """How a donor is drawn among the similar households."""

    RISK = "risk"  # with probability proportional to its own risk
    UNIFORM = "uniform"


@dataclass(frozen=True)
class Composition:
    """The members of a household counted by a cross of breakdowns; without any, only their number."""

    axes: tuple[Breakdown, ...]


Profile = tuple[Breakdown | Composition, ...]


@dataclass(frozen=True, kw_only=True)
class SwapRule:
    """What ``[swap]`` declares."""

    k: int  # at risk: fewer than k similar persons
    risk: tuple[Breakdown, ...]
    similar: tuple[Profile, ...]  # tried in order
    rate: Fraction  # of the households
    cap: Fraction | None
    levels: tuple[str, ...]  # columns of the geography, coarse to fine; the last is its finest
    donors: Donors
    inside_parent: bool
    carry: tuple[str, ...]
    exclude: Filter | None
    risk_column: str | None  # the office's own risks, at the finest level
    exclude_zero_risk: bool
    level_quotas: Mapping[str, Fraction]  # level -> most households exchanged at it, as a share of all
    region_quotas: Mapping[
        str, Fraction
    ]  # level -> most households of each of its regions that are exchanged

    def variables(self) -> Iterator[str]:
        """The names of the variables that decide risk, similarity and exclusion."""
        yield from (axis.variable for axis in self.breakdowns())
        yield from self.exclude.variables if self.exclude else ()

    def breakdowns(self) -> Iterator[Breakdown]:
        """The breakdowns that decide risk and similarity."""
        yield from self.risk
        for part in (part for profile in self.similar for part in profile):
            yield from part.axes if isinstance(part, Composition) else (part,)

    def canonical(self) -> dict[str, Any]:
        """Describe everything that decides the swaps, as JSON with a stable order."""
        return {
            "k": self.k,
            "risk": [axis.full_name for axis in self.risk],
            "similar": [[_part(part) for part in profile] for profile in self.similar],
            "rate": str(self.rate),
            "cap": None if self.cap is None else str(self.cap),
            "levels": list(self.levels),
            "donors": self.donors.value,
            "inside_parent": self.inside_parent,
            "carry": list(self.carry),
            "exclude": self.exclude.canonical if self.exclude else None,
            "risk_column": self.risk_column,
            "exclude_zero_risk": self.exclude_zero_risk,
            "level_quotas": {name: str(share) for name, share in sorted(self.level_quotas.items())},
            "region_quotas": {name: str(share) for name, share in sorted(self.region_quotas.items())},
        }


def _part(part: Breakdown | Composition) -> Any:
    if isinstance(part, Composition):
        return {"composition": [axis.full_name for axis in part.axes]}
    return part.full_name


def resolve_swap(
    declared: DeclaredSwap | None,
    population: PopulationRule | None,
    variables: Mapping[str, Variable],
    findings: Findings,
) -> SwapRule | None:
    """The rule of swapping; None where none is declared or it is invalid."""
    if declared is None:
        return None
    before = len(findings.problems)
    if population is None:
        if "population" not in findings.broken_sections:
            findings.add("swap", "no records to swap", "add [population] or remove [swap]")
        return None
    rule = _Resolver(declared, population, variables, findings).rule()
    return rule if len(findings.problems) == before else None


def check_compatible(
    rule: SwapRule | None,
    noise: NoiseRule | None,
    zeros: Iterable[Filter],
    population: PopulationRule | None,
    variables: Mapping[str, Variable],
    findings: Findings,
) -> None:
    """What excludes swapping: a guarantee that it breaks, and rules about places that it breaks."""
    if rule is None or population is None:
        return
    if noise is not None and noise.is_guaranteed:
        # one person more can change whom others are exchanged with, so that no noise bounds what that person changes
        remedy = 'remove [swap], or state no guarantee with claim = "none"'
        findings.add(
            "swap", "is declared with a differential privacy guarantee, which swapping breaks", remedy
        )
    exchanged = {*population.geography, *rule.carry}
    for zero in zeros:
        places = [name for name in zero.variables if variables[name].column in exchanged]
        if places:
            remedy = "remove one of the two: an exchanged household may be moved there"
            findings.add(
                "structural_zeros", f"a rule about the place {places[0]} together with [swap]", remedy
            )


@dataclass(frozen=True)
class _Resolver:
    declared: DeclaredSwap
    population: PopulationRule
    variables: Mapping[str, Variable]
    findings: Findings

    def rule(self) -> SwapRule:
        declared = self.declared
        self._check_population()
        self._check_shares()
        self._check_risk()
        levels = self._levels()
        quotas = declared.quotas
        rule = SwapRule(
            k=declared.k,
            risk=self._axes(declared.risk, "swap.risk"),
            similar=tuple(self._profile(profile, place) for place, profile in enumerate(declared.similar)),
            rate=_exact(declared.rate),
            cap=None if declared.cap is None else _exact(declared.cap),
            levels=levels,
            donors=Donors(declared.donors),
            inside_parent=declared.inside_parent,
            carry=tuple(dict.fromkeys((*declared.carry, *self._places()))),
            exclude=self._exclude(),
            risk_column=declared.risk_column,
            exclude_zero_risk=declared.exclude_zero_risk,
            level_quotas=self._quotas(quotas.levels, "swap.quotas.levels", levels),
            region_quotas=self._quotas(quotas.regions, "swap.quotas.regions", levels),
        )
        self._check_exchanged(rule)
        return rule

    def _places(self) -> Iterator[str]:
        """The columns of variables that are declared as places and are not in the geography."""
        for variable in self.variables.values():
            if variable.place and variable.column not in self.population.geography:
                yield variable.column

    def _check_population(self) -> None:
        population, findings = self.population, self.findings
        if "population" in findings.broken_sections:
            return
        if "persons" not in population.units:
            remedy = 'add persons = "persons.parquet" to [population]'
            findings.add("swap", "needs a table of persons", remedy)
        if "households" not in population.ids:
            findings.add("population.household_id", "is missing, and [swap] exchanges households", "name it")
        if not population.geography:
            remedy = "name the columns of the regions, coarse to fine"
            findings.add("population.geography", "is missing, and [swap] exchanges it", remedy)

    def _check_shares(self) -> None:
        declared = self.declared
        if declared.cap is not None and declared.cap < declared.rate:
            value = f"a cap of {declared.cap:g} below the rate of {declared.rate:g}"
            self.findings.add("swap.cap", value, "raise the cap or lower the rate")

    def _check_risk(self) -> None:
        declared, add = self.declared, self.findings.add
        if not declared.risk and declared.risk_column is None:
            remedy = 'name the variables that make a person known, such as risk = ["AGE.M", "SEX"]'
            add("swap.risk", "is missing", remedy)
        if declared.exclude_zero_risk and declared.risk_column is None:
            remedy = "name a risk_column, or leave it out: a counted risk is never zero"
            add("swap.exclude_zero_risk", "is given without a risk_column", remedy)

    def _levels(self) -> tuple[str, ...]:
        geography = self.population.geography
        if self.declared.levels is None:
            return geography
        known = set(self._known(self.declared.levels, geography, "swap.levels"))
        levels = tuple(column for column in geography if column in known)
        if geography and levels and levels[-1] != geography[-1]:
            remedy = f"add {geography[-1]!r}: exchanges below the last level are not considered"
            self.findings.add("swap.levels", "leaves out the finest column of the geography", remedy)
        return levels

    def _known(self, names: Iterable[str], known: Sequence[str], key: str) -> list[str]:
        held = []
        for name in names:
            if name in known:
                held.append(name)
            else:
                self.findings.add(key, f"unknown level {name!r}", alternatives(name, known))
        return held

    def _quotas(self, given: Mapping[str, float], key: str, levels: Sequence[str]) -> dict[str, Fraction]:
        return {name: _exact(given[name]) for name in self._known(given, levels, key)}

    def _profile(self, profile: Sequence[str | DeclaredComposition], place: int) -> Profile:
        key = f"swap.similar[{place}]"
        parts: list[Breakdown | Composition] = []
        for part in profile:
            if isinstance(part, DeclaredComposition):
                parts.append(Composition(self._axes(part.composition, f"{key}.composition")))
            else:
                parts.extend(self._axes([part], key))
        return tuple(parts)

    def _axes(self, names: Sequence[str], key: str) -> tuple[Breakdown, ...]:
        found = (self._axis(name, key) for name in names)
        return tuple(axis for axis in found if axis is not None)

    def _axis(self, name: str, key: str) -> Breakdown | None:
        """A breakdown by its name, or the leaves of a variable by the variable's."""
        variable, _, level = name.partition(".")
        if variable in self.findings.broken_variables:
            return None
        if variable not in self.variables:
            self.findings.add(
                key, f"unknown variable {variable!r}", alternatives(variable, [*self.variables])
            )
            return None
        held = self.variables[variable]
        axis = held.breakdowns.get(level or variable)
        if axis is None and level:
            known = [axis.full_name for axis in held.breakdowns.values()]
            self.findings.add(key, f"unknown breakdown {name!r}", alternatives(name, known))
        elif axis is None:
            axis = breakdown(variable, variable, held.codelist, held.codelist.leaves)
        return axis

    def _exclude(self) -> Filter | None:
        text = self.declared.exclude
        if text is None or mentioned(text) & self.findings.broken_variables:
            return None
        trees = {name: variable.codelist for name, variable in self.variables.items()}
        axes = {name: variable.breakdowns for name, variable in self.variables.items()}
        with self.findings.gathering():
            found = parse_filter(text, trees, self.findings.path, "swap.exclude", axes)
            if found.passes_all:
                self.findings.add("swap.exclude", "excludes every household", "exclude fewer")
            return found
        return None

    def _check_exchanged(self, rule: SwapRule) -> None:
        """What is exchanged cannot decide risk or similarity, and is named once."""
        exchanged = {*self.population.geography, *rule.carry}
        for name in sorted(set(rule.variables())):
            if self.variables[name].column in exchanged:
                remedy = "remove it: places are exchanged, and risk is counted inside each region as it is"
                self.findings.add("swap", f"{name} is a place, not a property of the household", remedy)
        kept = {*self.population.ids.values(), self.population.record_key}
        for column in rule.carry:
            if column in self.population.geography or column in kept:
                remedy = "name only what follows the place and is not geography, such as grid coordinates"
                self.findings.add("swap.carry", f"column {column!r} is geography or an id", remedy)


def _exact(share: float) -> Fraction:
    return Fraction(str(share))
