"""The programme file as its author writes it: keys, types and defaults, unknown keys refused.

It owns the whole and its records, variables, cubes and release; the sections that protect are declared by
declared_protection. Whether names, codes and files fit together is resolved elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from discreet.schema.declared_forms import (
    STRICT,
    Agency,
    Identifier,
    Label,
    Text,
    Version,
    Word,
    text_or_table,
)
from discreet.schema.declared_protection import DeclaredGates, DeclaredServe, DeclaredSwap, NoiseEntry

UNITS = ("persons", "households", "families", "dwellings")
ID_KEYS = {
    "persons": "person_id",
    "households": "household_id",
    "families": "family_id",
    "dwellings": "dwelling_id",
}
UnitName = Literal["persons", "households", "families", "dwellings"]


class _Declared(BaseModel):
    model_config = STRICT


class DeclaredSource(_Declared):
    """A table or query of a database, or a query over files."""

    uri: Text | None = None
    table: Text | None = None
    query: Text | None = None


class DeclaredCodelist(_Declared):
    """A codelist file whose indentation is not written with ``@``."""

    file: Text
    lead: Annotated[str, Field(min_length=1, max_length=1)] = "@"


SourceEntry = Annotated[
    Annotated[Text, Tag("|text")] | Annotated[DeclaredSource, Tag("|table")], Discriminator(text_or_table)
]
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


class DeclaredPopulation(_Declared):
    """Where the records are and what identifies them."""

    persons: SourceEntry | None = None
    households: SourceEntry | None = None
    families: SourceEntry | None = None
    dwellings: SourceEntry | None = None
    person_id: Text | None = None
    household_id: Text | None = None
    family_id: Text | None = None
    dwelling_id: Text | None = None
    record_key: Text | None = None
    geography: list[Text] = []


class DeclaredVariable(_Declared):
    """One variable: its column, its codelist and the breakdowns that cubes may use."""

    column: Text | None = None
    units: Annotated[list[UnitName], Field(min_length=1)] | None = None
    codelist: CodelistEntry | None = None
    breakdowns: Annotated[dict[Word, BreakdownEntry], Field(min_length=1)] | None = None
    label: Label | None = None
    breakdown_labels: dict[Text, Label] = {}


class DeclaredStandard(_Declared):
    """Built-in cubes, whole or in part."""

    programme: Literal["eu-census-2021"]
    tables: Annotated[list[Text], Field(min_length=1)] | None = None


class DeclaredCounts(_Declared):
    """A ready-made table of counts with cell keys."""

    file: Text
    count: Text = "count"
    key: Text = "key"
    modulus: Annotated[int, Field(ge=2, le=2**62)] = 2**32


class DeclaredCube(_Declared):
    """One table: a cross of breakdowns."""

    id: Identifier
    title: str = ""
    unit: UnitName = "persons"
    axes: Annotated[list[Text], Field(min_length=1, max_length=16)]
    base: Text | None = None
    count: Text | None = None
    weight: Text | None = None
    counts: DeclaredCounts | None = None


class DeclaredStructuralZero(_Declared):
    """Combinations of codes that cannot occur."""

    where: Text


class DeclaredRelease(_Declared):
    """What is written and what it tells of the noise."""

    name: Identifier | None = None
    title: Label | None = None
    unit_labels: dict[UnitName, Label] = {}
    agency: Agency = "DISCREET"
    version: Version = "1.0"
    formats: list[Literal["parquet", "csv", "sdmx-csv", "json-stat", "xlsx"]] = ["parquet"]
    disclose: Literal["law", "variance", "none"] = "variance"


class DeclaredLimits(_Declared):
    """What a programme may at most ask for."""

    cells: Annotated[int, Field(ge=1)] = 200_000_000
    published: Annotated[int, Field(ge=1)] = 50_000_000


class DeclaredProgramme(_Declared):
    """The whole file.

    A list may hold None only while mistakes are gathered: an entry that does not fit is taken out so that the
    rest can still be looked at, and the entries after it keep their place.
    """

    population: DeclaredPopulation | None = None
    variables: dict[Word, DeclaredVariable] = {}
    standard: DeclaredStandard | None = None
    cubes: list[DeclaredCube | None] = []
    structural_zeros: list[DeclaredStructuralZero | None] = []
    swap: DeclaredSwap | None = None
    noise: NoiseEntry | None = None
    release: DeclaredRelease = DeclaredRelease()
    limits: DeclaredLimits = DeclaredLimits()
    gates: DeclaredGates = DeclaredGates()
    serve: DeclaredServe = DeclaredServe()


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The declared models that an annotation mentions, however nested."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in models_in(part)]


def keys_at(path: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand in the table at a path of the file."""
    models: list[type[BaseModel]] = [DeclaredProgramme]
    for step in path:
        fields = [model.model_fields[step] for model in models if step in model.model_fields]
        if fields:  # a step that is no key is the name of a variable or a place in a list
            models = [model for field in fields for model in models_in(field.annotation)]
    return sorted({key for model in models for key in model.model_fields})


def all_keys() -> set[str]:
    """Every key that a programme file may hold, as ``section.key``."""
    return set(_keys_below("", DeclaredProgramme))


def _keys_below(path: str, model: type[BaseModel]) -> Iterator[str]:
    for key, field in model.model_fields.items():
        yield path + key
        for below in models_in(field.annotation):
            yield from _keys_below(f"{path}{key}.", below)
