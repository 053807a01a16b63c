"""The ``[variables]`` and ``[standard]`` sections: codelists, breakdowns, and what the built-in programme supplies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Discriminator, Field, Tag

from discreet.errors import Mistakes, Problem, mistake
from discreet.lazy import lazily
from discreet.programme import eu2021
from discreet.programme.attributes import UNDECLARED, Attribute, HolderName, attribute
from discreet.programme.codelist import (
    Breakdown,
    Codelist,
    breakdown,
    codelist,
    read_codelist,
    with_level_names,
)
from discreet.programme.coding import (
    FROM_CODELIST,
    PLAIN,
    Coding,
    Day,
    Limits,
    MissingValues,
    codelist_problems,
    coding,
    coding_problems,
    made_codes,
    with_bands_of,
)
from discreet.programme.filter import alternatives
from discreet.programme.population import UnitName
from discreet.programme.section import (
    Declared,
    DescriptionEntry,
    Findings,
    LabelEntry,
    Text,
    Word,
    is_file,
    text_or_table,
)

if TYPE_CHECKING:
    from discreet.programme import sdmx_codelist
else:
    sdmx_codelist = lazily("discreet.programme.sdmx_codelist")

SDMX_ENDINGS = (".xml", ".json")


class DeclaredCodelist(Declared):
    """A codelist file whose indentation is not written with ``@``, or one of several in an SDMX message."""

    file: Text
    lead: Annotated[str, Field(min_length=1, max_length=1)] = "@"
    id: Text | None = None


CodelistEntry = Annotated[
    Annotated[Text, Tag("|text")] | Annotated[DeclaredCodelist, Tag("|table")], Discriminator(text_or_table)
]


def _level_or_codes(value: object) -> str:
    return "|codes" if isinstance(value, list) else "|level"


BreakdownEntry = Annotated[
    Annotated[int, Field(ge=0, le=100), Tag("|level")]
    | Annotated[list[Text], Field(min_length=1), Tag("|codes")],
    Discriminator(_level_or_codes),
]


class DeclaredVariable(Declared):
    """One variable: its column, its codelist and the breakdowns that cubes may use."""

    column: Text | None = None
    of: HolderName | None = None
    fixed: bool | None = None
    place: bool | None = None
    units: Annotated[list[UnitName], Field(min_length=1)] | None = None
    codelist: CodelistEntry | None = None
    missing: Text | None = None
    missing_values: MissingValues | None = None
    bands: Limits | None = None
    reference_day: Day | None = None
    breakdowns: Annotated[dict[Word, BreakdownEntry], Field(min_length=1)] | None = None
    label: LabelEntry | None = None
    breakdown_labels: dict[Text, LabelEntry] = {}
    description: DescriptionEntry | None = None
    source: LabelEntry | None = None
    topic: LabelEntry | None = None


class DeclaredStandard(Declared):
    """Built-in cubes, whole or in part."""

    programme: Literal["eu-census-2021"]
    tables: list[Text] | None = None


@dataclass(frozen=True)
class Variable:
    """One variable: the column with its leaf codes, and the breakdowns that cubes use."""

    name: str
    column: str
    codelist: Codelist
    breakdowns: Mapping[str, Breakdown]
    units: tuple[str, ...] | None  # None: any unit whose table has the column
    attribute: Attribute = UNDECLARED  # whose it is
    place: bool | None = None  # whether it is a place; None: not declared, and then that of the geography
    coding: Coding = PLAIN  # how its values become codes


NO_CODELISTS: Mapping[str, Codelist] = {}
SHOWN = 5  # codes named in a message

Cuts = Mapping[str, int | Sequence[str]]


def standard_tables(
    declared: DeclaredStandard | None, findings: Findings
) -> tuple[eu2021.StandardTable, ...]:
    """The built-in tables that the programme selects."""
    if declared is None:
        return ()
    try:
        return eu2021.tables(declared.tables)
    except Mistakes as mistakes:
        for problem in mistakes.problems:
            findings.add("standard.tables", problem.value, problem.remedy)
        findings.broken_sections.add("standard")
        return ()


def standard_names(declared: DeclaredStandard | None) -> set[str]:
    """The variables of the built-in programme, where it is used."""
    return set() if declared is None else set(eu2021.variables())


def resolve_variables(
    declared: Mapping[str, DeclaredVariable],
    standard: DeclaredStandard | None,
    tables: Sequence[eu2021.StandardTable],
    findings: Findings,
    supplied: Mapping[str, Codelist] = NO_CODELISTS,
    own: str = eu2021.OWN,
) -> dict[str, Variable]:
    """Every declared variable, and those of the built-in tables that are not declared.

    Supplied codelists replace the files that are declared; built-in labels are in the language ``own`` if they have it.
    """
    built_in = standard_names(standard)
    variables: dict[str, Variable] = {}
    for name, entry in declared.items():
        with findings.gathering():
            variables[name] = _declared_variable(name, entry, built_in, findings, supplied, own)
        if name not in variables:
            findings.broken_variables.add(name)
    wanted = dict.fromkeys(name for table in tables for name in table.variables)
    for name in sorted(set(wanted) - set(variables) - findings.broken_variables):
        with findings.gathering():
            variables[name] = _standard_variable(name, variables, findings, own)
        if name not in variables:
            findings.broken_variables.add(name)
    return variables


def _declared_variable(
    name: str,
    entry: DeclaredVariable,
    standard: set[str],
    findings: Findings,
    supplied: Mapping[str, Codelist],
    own: str,
) -> Variable:
    key = f"variables.{name}"
    found = _coding(name, entry, findings)
    tree = supplied.get(name) or _declared_codelist(name, entry, found, standard, findings, own)
    if entry.bands == FROM_CODELIST:
        found = _bands_of_codelist(found, tree, key, findings)
    _require_sound(codelist_problems(found, tree), key, findings)
    if entry.breakdowns is not None:
        axes = _breakdowns(name, tree, entry.breakdowns, str(findings.path), f"{key}.breakdowns")
    elif name in standard:
        axes = _standard_breakdowns(name, tree)
    else:
        axes = with_level_names({name: breakdown(name, name, tree, tree.leaves)})
    units = None if entry.units is None else tuple(dict.fromkeys(entry.units))
    whose = _attribute(name, entry, standard)
    return Variable(name, entry.column or name.lower(), tree, axes, units, whose, entry.place, found)


def _coding(name: str, entry: DeclaredVariable, findings: Findings) -> Coding:
    given = entry.bands, entry.missing, entry.missing_values, entry.reference_day
    _require_sound(coding_problems(*given), f"variables.{name}", findings)
    return coding(*given)


def _bands_of_codelist(found: Coding, tree: Codelist, key: str, findings: Findings) -> Coding:
    try:
        return with_bands_of(found, tree)
    except ValueError as error:
        remedy = (
            "name them as Y17, Y15-19, Y_LT15 and Y_GE85 (or 17, 15-19, 85+), or give the limits of the bands"
        )
        raise mistake(findings.path, f"{key}.bands", str(error), remedy) from None


def _require_sound(found: Iterable[tuple[str, str, str]], key: str, findings: Findings) -> None:
    problems = [Problem(str(findings.path), f"{key}.{own}", value, remedy) for own, value, remedy in found]
    if problems:
        raise Mistakes(problems)


def _attribute(name: str, entry: DeclaredVariable, standard: set[str]) -> Attribute:
    """What is declared; where something is left out, that of the built-in programme."""
    built_in = eu2021.attribute_of(name) if name in standard and entry.of is None else UNDECLARED
    of = built_in.of if entry.of is None else entry.of
    return attribute(of, built_in.fixed if entry.fixed is None else entry.fixed)


def _declared_codelist(
    name: str, entry: DeclaredVariable, found: Coding, standard: set[str], findings: Findings, own: str
) -> Codelist:
    key = f"variables.{name}.codelist"
    if entry.codelist is None:
        if found.bands:
            return codelist(name, made_codes(found))
        if name in standard and name not in (eu2021.GEOGRAPHY, eu2021.WORKPLACE):
            return codelist(name, eu2021.codelist_rows(name, own))
        raise mistake(
            findings.path, key, "is missing", "give a file with code,parent,label, or bands of numbers"
        )
    given = DeclaredCodelist(file=entry.codelist) if isinstance(entry.codelist, str) else entry.codelist
    path = findings.folder / given.file
    if not is_file(path):
        raise mistake(
            findings.path, key, f"no file {given.file!r}", f"put it into {findings.folder} or correct it"
        )
    if path.suffix.lower() in SDMX_ENDINGS:
        return codelist(name, sdmx_codelist.read_sdmx_codes(path, given.id or "", own), str(path))
    return read_codelist(path, name, given.lead)


def _standard_variable(
    name: str, variables: Mapping[str, Variable], findings: Findings, own: str
) -> Variable:
    if name in (eu2021.GEOGRAPHY, eu2021.WORKPLACE):
        tree = _regional_codelist(name, variables, findings, own)
    else:
        tree = codelist(name, eu2021.codelist_rows(name, own))
    axes = _standard_breakdowns(name, tree)
    return Variable(name, eu2021.column(name), tree, axes, None, eu2021.attribute_of(name))


def _regional_codelist(
    name: str, variables: Mapping[str, Variable], findings: Findings, own: str
) -> Codelist:
    """The built-in programme has no regions: the place of work follows from the declared geography."""
    if name == eu2021.WORKPLACE and eu2021.GEOGRAPHY in variables:
        return codelist(name, eu2021.lpw_rows(variables[eu2021.GEOGRAPHY].codelist, own))
    if eu2021.GEOGRAPHY in findings.broken_variables:
        raise Mistakes([])
    remedy = f"declare [variables.{eu2021.GEOGRAPHY}] with the codelist of your regions"
    raise mistake(findings.path, f"variables.{eu2021.GEOGRAPHY}", "is missing", remedy)


def _standard_breakdowns(name: str, tree: Codelist) -> dict[str, Breakdown]:
    """The built-in breakdowns that the tree is deep enough for; a cube that uses a deeper one reports it."""
    axes = {}
    for axis, cut in eu2021.breakdowns(name).items():
        if isinstance(cut, int) and cut <= tree.depth:
            axes[axis] = breakdown(name, axis, tree, tree.level(cut))
        elif not isinstance(cut, int) and set(cut) <= set(tree.codes):
            axes[axis] = breakdown(name, axis, tree, [tree.position[code] for code in cut])
    return with_level_names(axes)


def _breakdowns(name: str, tree: Codelist, cuts: Cuts, file: str, key: str) -> dict[str, Breakdown]:
    problems: list[Problem] = []
    axes = {}
    for axis, cut in cuts.items():
        found = _level_problems(tree, cut) if isinstance(cut, int) else cut_problems(tree, cut)
        problems.extend(Problem(file, f"{key}.{axis}", value, remedy) for value, remedy in found)
        if not found:
            places = tree.level(cut) if isinstance(cut, int) else sorted(tree.position[code] for code in cut)
            axes[axis] = breakdown(name, axis, tree, places)
    if problems:
        raise Mistakes(problems)
    return with_level_names(axes)


def _level_problems(tree: Codelist, level: int) -> list[tuple[str, str]]:
    if level <= tree.depth:
        return []
    return [
        (f"level {level}", f"the codelist has {tree.depth} levels below the total; use 0 to {tree.depth}")
    ]


def cut_problems(tree: Codelist, codes: Sequence[str]) -> list[tuple[str, str]]:
    """Why a list of codes is not a cut of the tree: every leaf must lie under exactly one of them."""
    unknown = [code for code in codes if code not in tree.position]
    if unknown:
        return [(f"unknown code {code!r}", alternatives(code, tree.codes)) for code in unknown]
    found = [
        (f"code {code!r} occurs {times} times", "keep it once")
        for code, times in Counter(codes).items()
        if times > 1
    ]
    wanted = {tree.position[code] for code in codes}
    for index in sorted(wanted):
        above = next((place for place in tree.ancestors(index)[1:] if place in wanted), None)
        if above is not None:
            remedy = "keep one of the two: every code may count once"
            found.append((f"code {tree.codes[index]!r} lies under {tree.codes[above]!r}", remedy))
    missing = [tree.codes[leaf] for leaf in tree.leaves if not wanted.intersection(tree.ancestors(leaf))]
    if missing:
        shown = ", ".join(missing[:SHOWN]) + (", .." if len(missing) > SHOWN else "")
        found.append((f"{len(missing)} codes are left out: {shown}", "add them or a code above them"))
    return found
