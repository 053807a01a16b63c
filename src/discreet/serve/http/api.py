"""The table builder's own API: catalogue, preview, tables, noise of cells."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi import Query as Parameter
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from discreet.formats.columns import Texts
from discreet.formats.publication import promise
from discreet.programme.codelist import Breakdown
from discreet.programme.definitions import Definition, Definitions
from discreet.programme.labels import Labels
from discreet.serve.answer import Answer, Balance, NoiseRange, Preview
from discreet.serve.catalogue import UNLIMITED, Catalogue, ServedVariable
from discreet.serve.comparison import Comparison, Ranges, compared_ranges, level_of_each
from discreet.serve.dataset import label_of
from discreet.serve.http.downloads import TABLES, File, Format, media_type, require_form, written
from discreet.serve.http.languages import language_of
from discreet.serve.http.layout import Compare, Layout, Percent
from discreet.serve.http.problems import HttpProblem, Refused, areas_json, invalid_problem, refusal_members
from discreet.serve.http.respond import PRIVATE, SHARED, send, send_translated
from discreet.serve.http.security import Caller
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.serve.query import Axis, Group, Query, to_json
from discreet.text.phrase import Language, phrase, said

MOST_CODES = 200_000
LONGEST_WHERE = 20_000
LONGEST_NAME = 80  # characters of a file's name


def _sound(text: str) -> str:
    """Reject characters that databases and files cannot store."""
    if "\x00" in text:
        raise ValueError(phrase("has a character of code 0"))
    return text


def _writable(value: dict[str, Any]) -> dict[str, Any]:
    """Reject what JSON in UTF-8 cannot express: surrogates, NaN and infinity."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ValueError(phrase("cannot be written as JSON")) from None
    return value


def _not_share(kind: Comparison) -> Comparison:
    """Reject what percentages are for."""
    if kind is Comparison.SHARE:
        raise ValueError(phrase("is written as percent"))
    return kind


Text = Annotated[str, AfterValidator(_sound)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_sound)]
Codes = Annotated[list[Name], Field(max_length=MOST_CODES)]


class AxisBody(BaseModel):
    """One axis: a breakdown and the requested codes, or a variable and groups of its codes."""

    model_config = ConfigDict(extra="forbid")

    breakdown: Name = Field(examples=["AGE.M"])
    codes: Codes = Field(default=[], description="Requested codes, _T for the total; empty: all.")
    groups: dict[Name, Codes] = Field(default={}, description="Names of groups and the codes in them.")

    def axis(self) -> Axis:
        """The axis."""
        groups = tuple(Group(name, tuple(codes)) for name, codes in self.groups.items())
        return Axis(self.breakdown, tuple(self.codes), groups)


class QueryBody(BaseModel):
    """A question: who is counted, crossed by what."""

    model_config = ConfigDict(extra="forbid")

    unit: Name = Field(default="persons", examples=["persons"])
    axes: list[AxisBody | Name] = Field(default=[], max_length=50, examples=[[{"breakdown": "SEX"}]])
    where: Annotated[str, Field(max_length=LONGEST_WHERE), AfterValidator(_sound)] = ""
    count: Name = ""

    def query(self) -> Query:
        """The question."""
        axes = tuple(Axis(axis) if isinstance(axis, str) else axis.axis() for axis in self.axes)
        return Query(self.unit or "persons", axes, self.where, self.count)


Computed = Annotated[Comparison, AfterValidator(_not_share)]
Cells = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=1_000)]


class ComparedBody(BaseModel):
    """What cells are compared with: a cell for each, and how."""

    model_config = ConfigDict(extra="forbid")

    kind: Comparison
    cells: Cells = Field(alias="with")


class RangesBody(BaseModel):
    """Cells of an answer, by position, whose noise ranges are requested; with others, those of their comparison."""

    model_config = ConfigDict(extra="forbid")

    query: QueryBody
    cells: Cells
    compared: ComparedBody | None = None
    level: float = Field(default=0.95, ge=0.5, le=0.9999)


class SaveBody(BaseModel):
    """A question to store permanently, with any JSON of the client."""

    model_config = ConfigDict(extra="forbid")

    query: QueryBody
    extra: Annotated[dict[str, Any], AfterValidator(_writable)] = Field(
        default={}, description="Up to 20,000 characters of JSON: layout, language."
    )


class CompareBody(BaseModel):
    """A category that every number is compared with, and how."""

    model_config = ConfigDict(extra="forbid")

    kind: Computed
    variable: Name
    code: Name


Places = Annotated[list[Annotated[int, Field(ge=0)]] | None, Field(min_length=1, max_length=MOST_CODES)]


class LayoutBody(BaseModel):
    """The layout of a CSV or XLSX file."""

    model_config = ConfigDict(extra="forbid")

    columns: Annotated[list[Name], Field(max_length=50)] = []
    texts: Texts = Texts.BOTH
    percent: Percent | None = None
    compare: CompareBody | None = None
    counts: bool = Field(default=False, description="Whether counts are shown next to what is computed.")
    ranges: bool = Field(
        default=False, description="Whether the ranges of true values are next to the numbers."
    )
    lines: Places = Field(
        default=None, description="The rows that are shown, in order, by position; none: all."
    )
    fields: Places = Field(default=None, description="The columns that are shown, likewise.")

    def layout(self) -> Layout:
        """The layout."""
        return Layout(
            tuple(self.columns),
            self.texts,
            percent=self.percent,
            compare=None if self.compare is None else Compare(**vars(self.compare)),
            counts=self.counts,
            ranges=self.ranges,
            lines=None if self.lines is None else tuple(self.lines),
            fields=None if self.fields is None else tuple(self.fields),
        )


class JobBody(BaseModel):
    """A table as a file in a layout, made at once or in the background."""

    model_config = ConfigDict(extra="forbid")

    query: QueryBody
    format: Format = Format.CSV
    layout: LayoutBody = LayoutBody()


router = APIRouter(prefix="/api/v1", tags=["table builder"])

QueryText = Annotated[
    str,
    Parameter(
        description="The question as JSON, as it is sent by POST; send long ones by POST.",
        examples=['{"unit":"persons","axes":["SEX"]}'],
    ),
]
FormatOf = Annotated[Format, Parameter(alias="format", description="The format of the answer.")]
ColumnsOf = Annotated[
    str, Parameter(max_length=1_000, description="CSV, XLSX: variables across the columns, with commas.")
]
PercentOf = Annotated[
    Percent | None,
    Parameter(description="CSV, XLSX: shares of the published totals of rows, of columns or of the table."),
]
CountsOf = Annotated[
    bool, Parameter(description="With percent and columns: whether the counts are shown next to the shares.")
]
NearestOf = Annotated[
    bool, Parameter(description="Whether a refusal lists tables that would pass; it takes longer.")
]
TextsOf = Annotated[Texts, Parameter(description="CSV, XLSX: codes, labels or both.")]
CompareOf = Annotated[
    Computed | None, Parameter(description="CSV, XLSX: numbers compared with the category that base names.")
]
BaseOf = Annotated[str, Parameter(max_length=400, description="With compare: variable and code, SEX:1.")]
RangesOf = Annotated[
    bool,
    Parameter(
        description="With columns, and for JSON-stat, PX and SDMX-CSV: whether the ranges of true values are included."
    ),
]


async def layout_of(
    columns: ColumnsOf = "",
    texts: TextsOf = Texts.BOTH,
    percent: PercentOf = None,
    counts: CountsOf = False,
    compare: CompareOf = None,
    base: BaseOf = "",
    ranges: RangesOf = False,
) -> Layout:
    """The layout in the parameters of a request."""
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    variable, _, code = base.partition(":")
    compared = None if compare is None else Compare(compare, variable.strip(), code.strip())
    return Layout(names, texts, percent=percent, counts=counts, compare=compared, ranges=ranges)


LayoutOf = Annotated[Layout, Depends(layout_of)]


@router.get("/catalogue")
def catalogue(request: Request, service: ServiceOf) -> Response:
    """The catalogue: units, variables and their breakdowns, declared tables, rules and noise."""
    return send_translated(request, catalogue_json(service.catalogue), cache=SHARED)


@router.get("/breakdowns/{name}")
def breakdown(request: Request, service: ServiceOf, name: str) -> Response:
    """The codes of a breakdown, such as AGE.M, with their labels and parents."""
    found = service.catalogue.breakdown(name)
    if found is None:
        raise HttpProblem(404, phrase("There is no such breakdown; the catalogue lists them."))
    of = service.catalogue.variables[found.variable]
    return send_translated(request, breakdown_json(found, of, service.catalogue.labels), cache=SHARED)


@router.get("/variables/{name}")
def variable(request: Request, service: ServiceOf, name: str) -> Response:
    """All codes of a variable: those that a filter or a grouping may name."""
    found = service.catalogue.variables.get(name)
    if found is None:
        raise HttpProblem(404, phrase("There is no such variable; the catalogue lists them."))
    return send_translated(request, _codelist_json(found, service.catalogue.labels), cache=SHARED)


@router.post("/preview")
async def preview(
    request: Request, service: ServiceOf, caller: CallerOf, query: QueryBody, nearest: NearestOf = False
) -> Response:
    """How large an answer would be, which areas it would withhold, whether it would be refused; free of charge."""
    look = service.preview_with_nearest if nearest else service.preview
    return send_translated(request, preview_json(await look(caller, query.query())))


@router.get("/preview")
async def preview_of_text(
    request: Request, service: ServiceOf, caller: CallerOf, query: QueryText, nearest: NearestOf = False
) -> Response:
    """The same, with the question in the address."""
    look = service.preview_with_nearest if nearest else service.preview
    return send_translated(request, preview_json(await look(caller, read_query(query))))


@router.post("/table", responses=TABLES)
async def table(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    query: QueryBody,
    layout: LayoutOf,
    form: FormatOf = Format.JSON_STAT,
) -> Response:
    """The protected table that answers a question."""
    return await table_response(request, service, caller, query.query(), form, layout)


@router.get("/table", responses=TABLES)
async def table_of_text(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    query: QueryText,
    layout: LayoutOf,
    form: FormatOf = Format.JSON_STAT,
) -> Response:
    """The same, with the question in the address."""
    return await table_response(request, service, caller, read_query(query), form, layout)


@router.post("/files", responses=TABLES)
async def table_file(request: Request, service: ServiceOf, caller: CallerOf, body: JobBody) -> Response:
    """The table as a file in a layout that an address has no room for: the rows that are shown, comparisons."""
    return await table_response(
        request, service, caller, body.query.query(), body.format, body.layout.layout()
    )


@router.head("/table", include_in_schema=False)
async def table_head(
    service: ServiceOf, caller: CallerOf, query: QueryText, form: FormatOf = Format.JSON_STAT
) -> Response:
    """Whether a question would be answered, and as what; nothing is charged, and nothing has values."""
    service.check(caller)
    found = await service.preview(caller, read_query(query))
    if found.refusal is not None:
        raise Refused(found.refusal)
    headers = {"Content-Type": media_type(form), "Cache-Control": PRIVATE}
    response = Response(status_code=413 if found.needs_job else 200, headers=headers)
    del response.headers["Content-Length"]  # of the table, which is not known: it is not made
    return response


@router.post("/noise-ranges")
async def noise_ranges(request: Request, service: ServiceOf, caller: CallerOf, asked: RangesBody) -> Response:
    """Where the true counts of some cells of an answer are likely to be."""
    found = await service.answer(caller, asked.query.query(), lambda answer: ranges_json(answer, asked))
    return send_translated(request, found)


async def table_response(
    request: Request, service: Service, caller: Caller, query: Query, form: Format, layout: Layout
) -> Response:
    """Ask, write and send; an impossible layout is rejected before anything is charged."""
    require_form(query, form, layout)

    def write(answer: Answer) -> File:
        return written(answer, form, service.catalogue, layout)

    light = form is Format.JSON_STAT and not layout.ranges
    file = await service.file(caller, query, (form, layout), write, light=light)
    if form is Format.JSON_STAT:
        return send(request, file)
    name = file_name(query, service.catalogue, language_of(request))
    return send(request, file, name=f"{name}.{file.ending}")


def file_name(query: Query, catalogue: Catalogue, language: Language) -> str:
    """What is inside, as the name of a file without its ending: persons-by-age-and-sex-1f0c."""
    title = said(label_of(replace(query, where=""), catalogue.labels), language)
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    return f"{words[:LONGEST_NAME].strip('-') or catalogue.name}-{query.id[:4]}"


def read_query(text: str) -> Query:
    """A question from JSON text."""
    try:
        return QueryBody.model_validate_json(text).query()
    except ValidationError as error:
        raise invalid_problem(error.errors(include_input=False, include_url=False), ("query",)) from None


def catalogue_json(catalogue: Catalogue) -> dict[str, Any]:
    """The catalogue without the codes, which can be many."""
    rule = catalogue.rule
    return {
        "name": catalogue.name,
        "title": catalogue.heading,
        "agency": catalogue.agency,
        "version": catalogue.version,
        "units": list(catalogue.units),
        "unit_labels": {unit: catalogue.labels.unit(unit) for unit in catalogue.units},
        "counts": {unit: list(names) for unit, names in catalogue.counts.items()},
        "variables": [_variable_json(one, catalogue.labels) for one in catalogue.variables.values()],
        "tables": [{**vars(one), "axes": list(one.axes)} for one in catalogue.tables],
        "filters": {
            "allowed": rule.filters and catalogue.may_filter,
            "bases": sorted(set(catalogue.bases.values())),
        },
        "limits": {"axes": rule.axes, "cells": rule.cells, "job_cells": rule.job_cells},
        "place": rule.place,
        "noise": catalogue.noise.sentence(),
        "additivity": catalogue.additivity,
        "adds_up": catalogue.noise.adjusted,
        "protection": promise(catalogue.noise, catalogue.swapped),
        "swapped": catalogue.swapped,
        "charged": rule.account is not None,
        "from_release": not catalogue.may_filter,
        "history": {
            "success": rule.history.success,
            "largest": rule.history.largest,
            "difference": rule.history.difference,
            "together": rule.history.together,
        },
        "warnings": [UNLIMITED] if catalogue.is_unlimited else [],
    }


def _variable_json(variable: ServedVariable, labels: Labels) -> dict[str, Any]:
    return {
        "name": variable.name,
        "label": labels.variable(variable.name),
        "topic": labels.topics.get(variable.name, ""),
        **_definition_json(labels.definition(variable.name)),
        "units": list(variable.units),
        "is_place": variable.is_place,
        "may_group": variable.may_group,
        "breakdowns": [
            {
                "name": name,
                "label": labels.breakdown(name),
                "codes": len(axis),
                "finest": int(axis.finest.sum()),
                "depth": int(axis.depths.max()),
            }
            for name, axis in variable.breakdowns.items()
        ],
    }


def _definition_json(definition: Definition) -> dict[str, str]:
    return {"description": definition.description, "source": definition.source}


def _definitions_json(codes: Iterable[str], definitions: Definitions) -> dict[str, dict[str, str]]:
    """The definitions of the codes that have one."""
    return {code: _definition_json(definitions[code]) for code in codes if code in definitions}


def breakdown_json(axis: Breakdown, variable: ServedVariable, labels: Labels) -> dict[str, Any]:
    """The codes of a breakdown in order, the total first."""
    parents = [axis.codes[node] if node >= 0 else "" for node in axis.parents.tolist()]
    return {
        "name": axis.full_name,
        "label": labels.axis(axis.full_name),
        "variable": axis.variable,
        "codes": list(axis.codes),
        "labels": list(axis.labels),
        "parents": parents,
        "depths": axis.depths.tolist(),
        "levels": [labels.breakdowns.get(name, "") for name in axis.levels],
        "first": _first(axis, variable),
        "definitions": _definitions_json(axis.codes, axis.definitions),
    }


def _first(axis: Breakdown, variable: ServedVariable) -> list[int]:
    """Code -> the place of the coarsest breakdown of the variable that has it, as all finer ones do."""
    every = list(variable.breakdowns.values())
    first = [len(every) - 1] * len(axis)
    for place in range(len(every) - 1, -1, -1):
        known = every[place].position
        first = [
            place if at == min(place + 1, len(every) - 1) and code in known else at
            for code, at in zip(axis.codes, first, strict=True)
        ]
    return first


def _codelist_json(variable: ServedVariable, labels: Labels) -> dict[str, Any]:
    tree = variable.codelist
    parents = [tree.codes[node] if node >= 0 else "" for node in tree.parents]
    return {
        **_variable_json(variable, labels),
        "codes": list(tree.codes),
        "labels": list(tree.labels),
        "parents": parents,
        "depths": list(tree.depths),
        "levels": _levels(variable, labels),
        "definitions": _definitions_json(tree.codes, tree.definitions),
    }


def _levels(variable: ServedVariable, labels: Labels) -> list[str]:
    """The names of the codelist's levels, the first one first; empty where no breakdown ends at one level."""
    tree = variable.codelist
    depth_of = dict(zip(tree.codes, tree.depths, strict=True))
    names = [""] * max(tree.depths, default=0)
    for axis in variable.breakdowns.values():
        finest = axis.depths == axis.depths.max()
        depths = {depth_of.get(code, 0) for code, is_own in zip(axis.codes, finest, strict=True) if is_own}
        if len(depths) == 1 and (depth := depths.pop()):
            names[depth - 1] = labels.breakdowns.get(axis.full_name, "")
    return names


def preview_json(found: Preview) -> dict[str, Any]:
    """A preview for machines."""
    refusal = found.refusal
    return {
        "query": to_json(found.query),
        "id": found.query.id,
        "cells": found.cells,
        "needs_job": found.needs_job,
        "areas": found.areas,
        "withheld_areas": found.withheld,
        "blocked": areas_json(found.blocked),
        "blocked_count": len(found.blocked),
        "refusal": None if refusal is None else {"words": refusal.message, **refusal_members(refusal)},
        "cost": found.cost,
        "budget": None if found.balance is None else _balance_json(found.balance),
    }


def _balance_json(balance: Balance) -> dict[str, Any]:
    amounts = {"price": balance.price, "left": balance.left, "whole": balance.whole}
    return {"measure": balance.measure, **{name: float(amount) for name, amount in amounts.items()}}


def _estimate_json(found: NoiseRange) -> dict[str, float]:
    """The estimate and its standard error, where the release publishes them."""
    if found.estimate is None or found.error is None:
        return {}
    return {"estimate": found.estimate, "standard_error": found.error}


def ranges_json(answer: Answer, asked: RangesBody) -> dict[str, Any]:
    """The noise ranges of cells; null where the cell is withheld or too little of the noise is public."""
    others = asked.compared.cells if asked.compared else asked.cells
    if max(*asked.cells, *others) >= answer.size:
        message = phrase("The answer has {cells} cells, numbered from 0.", cells=answer.size)
        raise HttpProblem(400, message, kind="mistakes")
    if asked.compared is not None:
        return _compared_json(answer, asked, asked.compared)
    found = [(cell, answer.noise_range(cell, asked.level)) for cell in asked.cells]
    return {
        "level": asked.level,
        "noise": answer.noise,
        "ranges": [
            {"cell": cell, "low": None, "high": None, "words": ""}
            if one is None
            else {"cell": cell, "low": one.low, "high": one.high, "words": one.message, **_estimate_json(one)}
            for cell, one in found
        ],
    }


def _compared_json(answer: Answer, asked: RangesBody, compared: ComparedBody) -> dict[str, Any]:
    """Where comparisons of true counts are likely to be; a high is null where it has no limit."""
    if len(compared.cells) != len(asked.cells):
        message = phrase("compared: give one cell for each of the {cells} cells.", cells=len(asked.cells))
        raise HttpProblem(400, message, kind="mistakes")
    found = compared_ranges(
        compared.kind,
        _ranges_of(answer, asked.cells, asked.level),
        _ranges_of(answer, compared.cells, asked.level),
        np.array(asked.cells) == np.array(compared.cells),
    )
    return {
        "level": asked.level,
        "noise": answer.noise,
        "ranges": [
            {"cell": cell, "low": _known(low), "high": _known(high)}
            for cell, low, high in zip(asked.cells, found.low.tolist(), found.high.tolist(), strict=True)
        ],
    }


def _ranges_of(answer: Answer, cells: list[int], level: float) -> Ranges:
    ranges = [answer.noise_range(cell, level_of_each(level)) for cell in cells]
    ends = [(np.nan, np.nan) if one is None else (one.low, one.high) for one in ranges]
    low, high = np.array(ends, dtype=np.float64).T
    return Ranges(low, high)


def _known(limit: float) -> float | None:
    return limit if np.isfinite(limit) else None
