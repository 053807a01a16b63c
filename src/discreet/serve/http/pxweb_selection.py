"""Selections of PxWebApi: request bodies, value expressions, codelists, and the shape of the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import lru_cache
from math import prod

from pydantic import BaseModel, ConfigDict, Field

from discreet.formats.columns import Texts
from discreet.programme.codelist import Breakdown
from discreet.serve.catalogue import Catalogue, ServedTable
from discreet.serve.http.api import Codes, Name
from discreet.serve.http.json_stat import CONTENTS, contents_code
from discreet.serve.http.layout import Layout
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import LONGEST_NAME, Axis, Query
from discreet.text.phrase import Phrase, phrase

DEFAULT_CELLS = 2_000  # of a table that is requested without a selection, where it can be that small
CODELIST = "vs_"  # what PxWeb puts before the id of a set of values
MOST_SEARCHES = 20  # patterns and calls for one variable: each goes through all its codes
_CALL = re.compile(r"\[?\s*(TOP|BOTTOM|FROM|TO|RANGE)\s*\((.*)\)\s*\]?", re.IGNORECASE | re.DOTALL)
METADATA = phrase("see the metadata of the table")
PlaceOf = Callable[[str], int | None]


@dataclass(frozen=True)
class Picked:
    """What a client selects of one variable."""

    expressions: tuple[str, ...]
    codelist: str = ""
    literal: bool = False  # whether the expressions are codes and no patterns

    def codes(self, codes: Sequence[str], variable: str) -> tuple[str, ...]:
        """The picked ones of ``codes``."""
        return (named if self.literal else expanded)(self.expressions, codes, variable)


@dataclass(frozen=True, eq=False)
class PxTable:
    """A declared table with its axes."""

    served: ServedTable
    axes: tuple[Breakdown, ...]

    def axis(self, variable: str) -> Breakdown:
        """An axis by the name of its variable; case is ignored."""
        for axis in self.axes:
            if axis.variable.lower() == variable.lower():
                return axis
        known = (*(axis.variable for axis in self.axes), CONTENTS)
        raise wrong(
            variable, phrase("is no variable of this table"), phrase("choose from {names}", names=known)
        )


def once(pairs: Iterable[tuple[str, Picked]]) -> dict[str, Picked]:
    """What is selected of each variable, whose name may occur once; case is ignored."""
    made: dict[str, Picked] = {}
    seen: set[str] = set()
    for name, picked in pairs:
        if name.lower() in seen:
            raise wrong(name, phrase("is selected twice"), phrase("select each variable once"))
        seen.add(name.lower())
        made[name] = picked
    return made


def px_tables(catalogue: Catalogue) -> dict[str, PxTable]:
    """The declared tables, by id."""
    made = {}
    for served in catalogue.tables:
        axes = [catalogue.breakdown(name) for name in served.axes]
        made[served.id] = PxTable(served, tuple(axis for axis in axes if axis is not None))
    return made


def question_of(table: PxTable, selection: Mapping[str, Picked], catalogue: Catalogue) -> Query:
    """The question that a selection asks: variables that are left out are eliminated; no selection is the default."""
    served, wanted = table.served, selected_codes(table, selection, catalogue)
    axes = [Axis(axis.full_name, wanted[axis.variable]) for axis in table.axes if axis.variable in wanted]
    return Query(served.unit, tuple(axes), served.base, served.count)


def selected_codes(
    table: PxTable, selection: Mapping[str, Picked], catalogue: Catalogue
) -> dict[str, tuple[str, ...]]:
    """The codes that a selection picks of each variable; no selection is the default."""
    if not selection:
        return default_codes(table, catalogue.rule.axes)
    wanted: dict[str, tuple[str, ...]] = {}
    for name, picked in selection.items():
        if name.lower() == CONTENTS.lower():
            picked.codes((contents_code(table.served.count),), CONTENTS)
            continue
        axis = table.axis(name)
        found = picked.codes(codes_of(axis, picked.codelist, catalogue), axis.variable)
        if found:
            wanted[axis.variable] = found
    return wanted


def default_codes(table: PxTable, most: int) -> dict[str, tuple[str, ...]]:
    """All codes of the first ``most`` variables, or where these are too many the highest levels of the longest of them.

    Of these only the total may stay; variables beyond what the rules allow are eliminated.
    """
    axes = table.axes[:most]
    levels = [int(axis.depths.max()) for axis in axes]

    def chosen(place: int) -> tuple[str, ...]:
        depths = zip(axes[place].codes, axes[place].depths.tolist(), strict=True)
        return tuple(code for code, depth in depths if depth <= levels[place])

    codes = [chosen(place) for place in range(len(levels))]
    while prod(map(len, codes)) > DEFAULT_CELLS and any(levels):
        deep = (place for place, level in enumerate(levels) if level)
        longest = max(deep, key=lambda place: len(codes[place]))
        levels[longest] -= 1
        codes[longest] = chosen(longest)
    return {axis.variable: held for axis, held in zip(axes, codes, strict=True)}


def codelists_of(axis: Breakdown, catalogue: Catalogue) -> list[Breakdown]:
    """The breakdowns of a variable whose codes an axis has: sets of values to choose from."""
    held = axis.position.keys()
    variable = catalogue.variables[axis.variable]
    return [one for one in variable.breakdowns.values() if one.position.keys() <= held]


def codes_of(axis: Breakdown, codelist: str, catalogue: Catalogue) -> tuple[str, ...]:
    """The codes of an axis, or those of one of its codelists."""
    if not codelist:
        return axis.codes
    known = {CODELIST + one.full_name: one for one in codelists_of(axis, catalogue)}
    if codelist not in known:
        message = phrase("has no codelist {name}", name=repr(codelist[:60]))
        raise wrong(axis.variable, message, phrase("choose from {names}", names=tuple(known)))
    return known[codelist].codes


def expanded(expressions: Sequence[str], codes: Sequence[str], variable: str) -> tuple[str, ...]:
    """The codes that expressions pick, each once, in the order of the codelist; no expression picks none.

    An expression that picks nothing is a mistake: a variable without values would be eliminated, and its total returned
    to a client that requested something else.
    """
    if expressions and set(expressions) == {"*"}:
        return tuple(codes)
    place_of, found, searches = places_of(codes), set[int](), 0
    for expression in expressions:
        place = place_of(expression)
        if place is not None:
            found.add(place)
            continue
        searches += 1
        if len(expression) > LONGEST_NAME:
            raise no_value(variable, expression)
        if searches > MOST_SEARCHES:
            message = phrase("has more than {most} patterns", most=MOST_SEARCHES)
            raise wrong(variable, message, phrase("name the values"))
        picked = _matching(expression, codes, place_of, variable)
        if not picked:
            raise no_value(variable, expression)
        found.update(picked)
    return tuple(codes[place] for place in sorted(found))


def named(values: Sequence[str], codes: Sequence[str], variable: str) -> tuple[str, ...]:
    """The codes that are named, each once, in the order of the codelist."""
    place_of = places_of(codes)
    places = {value: place_of(value) for value in values}
    found = {place for place in places.values() if place is not None}
    if None in places.values():
        raise no_value(variable, next(value for value, place in places.items() if place is None))
    return tuple(codes[place] for place in sorted(found))


def places_of(codes: Sequence[str]) -> PlaceOf:
    """Positions of codes: as written, or else without case or brackets; None where there is no such code."""
    held = tuple(codes)
    exact = _exact(held)

    def place_of(text: str) -> int | None:
        bare = text.strip().removeprefix("[").removesuffix("]")
        if text in exact or bare in exact:
            return exact.get(text, exact.get(bare))
        return None if set(bare) & set("*?(") else _folded(held).get(bare.casefold())

    return place_of


@lru_cache(maxsize=32)
def _exact(codes: tuple[str, ...]) -> Mapping[str, int]:
    return {code: place for place, code in enumerate(codes)}


@lru_cache(maxsize=8)
def _folded(codes: tuple[str, ...]) -> Mapping[str, int]:
    """Codes without their case; the first of those that differ only in case."""
    return {code.casefold(): place for place, code in reversed(list(enumerate(codes)))}


def no_value(variable: str, value: str) -> HttpProblem:
    """The problem of a value or an expression that a variable does not have."""
    return wrong(variable, phrase("has no value {value}", value=repr(value[:60])), METADATA)


def _matching(expression: str, codes: Sequence[str], place_of: PlaceOf, variable: str) -> Sequence[int]:
    """The places that a call or a pattern picks; case is ignored."""
    call = _CALL.fullmatch(expression.strip())
    if call is not None:
        given = [part.strip() for part in call[2].split(",")]
        return _called(call[1].upper(), given, range(len(codes)), place_of, variable)
    if not set(expression) & {"*", "?"}:
        return ()
    pattern = re.compile(translate(expression.replace("[", "[[]")), re.IGNORECASE)
    return [place for place, code in enumerate(codes) if pattern.match(code)]


def _called(name: str, given: list[str], places: range, place_of: PlaceOf, variable: str) -> Sequence[int]:
    """TOP and BOTTOM count from the ends, FROM, TO and RANGE go by the order of the codes."""
    if name in ("TOP", "BOTTOM"):
        if not 1 <= len(given) <= 2 or not all(part.isdecimal() and len(part) < 10 for part in given):
            message = phrase("has {call} without a number", call=name)
            raise wrong(variable, message, phrase("write {example}", example=f"{name}(5), {name}(5,10)"))
        count, skipped = int(given[0]), int(given[1]) if len(given) > 1 else 0
        ordered = places if name == "TOP" else places[::-1]
        return ordered[skipped : skipped + count]
    ends = [place for place in map(place_of, given) if place is not None]
    if len(given) != (2 if name == "RANGE" else 1) or len(ends) != len(given):
        raise wrong(variable, phrase("has {call} with other than its values", call=name), METADATA)
    first = min(ends) if name != "TO" else 0
    last = max(ends) if name != "FROM" else len(places) - 1
    return places[first : last + 1]


def split_values(text: str) -> tuple[str, ...]:
    """Values between commas, not split inside brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth <= 0:
            parts.append(text[start:place])
            start = place + 1
    return tuple(part.strip() for part in [*parts, text[start:]] if part.strip())


def wrong(variable: str, value: str, remedy: str) -> HttpProblem:
    """The problem of a mistake in a selection."""
    problem = {"key": variable[:60], "value": value, "remedy": remedy}
    message = Phrase("{key} {value}; {remedy}", problem)
    return HttpProblem(400, message, kind="mistakes", members={"problems": [problem]})


JSON_STAT, JSON_STAT_1, JSON_PX = "json-stat2", "json-stat", "json-px"
DATA_FORMATS = (JSON_STAT, JSON_PX, "csv", "xlsx", "px", "parquet")  # of PxWebApi 2
SEPARATORS = {"separatortab": "\t", "separatorspace": " ", "separatorsemicolon": ";"}
SHOWN = {"usecodes": Texts.CODES, "usetexts": Texts.LABELS, "usecodesandtexts": Texts.BOTH}
TITLE = "includetitle"
APPLICABLE = {"csv": {*SEPARATORS, *SHOWN, TITLE}, "xlsx": {*SHOWN, TITLE}}
PARAMETERS = (
    "UseCodes, UseTexts, UseCodesAndTexts, IncludeTitle, SeparatorTab, SeparatorSpace, SeparatorSemicolon"
)


@dataclass(frozen=True)
class Placement:
    """The variables across the columns and those down the rows."""

    heading: tuple[str, ...]
    stub: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """The requested shape, as the client writes it."""

    form: str = JSON_STAT
    parameters: tuple[str, ...] = ()
    heading: tuple[str, ...] = ()
    stub: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shape:
    """The format of a table, its layout, and its placement for clients that lay it out themselves."""

    form: str
    layout: Layout
    placement: Placement


def asked_of(
    form: str, parameters: Iterable[str] | None, heading: Iterable[str] | None, stub: Iterable[str] | None
) -> Asked:
    """The request of an address or a body; values are separated by commas or repeated."""
    return Asked(form.lower(), _flat(parameters), _flat(heading), _flat(stub))


def shaped(query: Query, asked: Asked) -> tuple[Query, Shape]:
    """A question with its axes in the order of their placement, and the shape of its answer."""
    if asked.form not in DATA_FORMATS:
        raise _mistake(phrase("outputFormat is one of {names}.", names=DATA_FORMATS))
    names = [axis.variable for axis in query.axes]
    placement = placed([*names, CONTENTS], asked.heading, asked.stub)
    order = [*placement.stub, *placement.heading]
    axes = sorted(query.axes, key=lambda axis: order.index(axis.variable))
    across = placement.heading if asked.heading or asked.stub else ()
    layout = _layout(asked, tuple(name for name in across if name != CONTENTS))
    return replace(query, axes=tuple(axes)), Shape(asked.form, layout, placement)


def placed(names: Sequence[str], heading: Sequence[str], stub: Sequence[str]) -> Placement:
    """The placement of variables: those that one side leaves out go to the other; by default the last is in columns."""
    if not heading and not stub:
        return Placement(tuple(names[-2:]), tuple(names[:-2]))
    across, down = _known(heading, names), _known(stub, names)
    left = [name for name in names if name not in across and name not in down]
    if across and down and left == [CONTENTS]:
        across, left = (*across, CONTENTS), []
    if len({*across, *down}) < len(across) + len(down) or (across and down and left):
        message = phrase("heading and stub name each selected variable once, or one of them is left out.")
        raise _mistake(message)
    return Placement(across or tuple(left), down or tuple(left if across else ()))


def _known(given: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    spelled = {name.lower(): name for name in names}
    for name in given:
        if name.lower() not in spelled:
            message = phrase("heading and stub name selected variables: {names}.", names=tuple(names))
            raise _mistake(message)
    return tuple(spelled[name.lower()] for name in given)


def _layout(asked: Asked, across: tuple[str, ...]) -> Layout:
    wanted = {part.lower() for part in asked.parameters}
    unknown = wanted - {*SEPARATORS, *SHOWN, TITLE}
    if unknown:
        raise _mistake(phrase("outputFormatParams are {names}.", names=PARAMETERS))
    if wanted - APPLICABLE.get(asked.form, set()):
        message = phrase("One of outputFormatParams does not apply to {form}.", form=asked.form)
        raise _mistake(message)
    texts = [SHOWN[part] for part in sorted(wanted & SHOWN.keys())]
    separators = [SEPARATORS[part] for part in sorted(wanted & SEPARATORS.keys())]
    if len(texts) > 1 or len(separators) > 1:
        message = phrase("Give at most one of the Use.. and one of the Separator.. parameters.")
        raise _mistake(message)
    return Layout(
        columns=across,
        texts=texts[0] if texts else Texts.BOTH,
        separator=separators[0] if separators else ",",
        title=TITLE in wanted,
    )


def _flat(given: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(part for text in given or () for part in split_values(text))


def _mistake(message: str) -> HttpProblem:
    return HttpProblem(400, message, kind="mistakes")


LOOSE = ConfigDict(extra="ignore")  # clients of several generations send more than is read


class VariableBody(BaseModel):
    """What is selected of one variable."""

    model_config = LOOSE

    variableCode: Name  # noqa: N815 - the standard's name
    valueCodes: Codes | None = None  # noqa: N815
    codelist: Name | None = None
    codeList: Name | None = None  # noqa: N815 - as earlier clients spell it

    def picked(self) -> Picked:
        """What is selected."""
        return Picked(tuple(self.valueCodes or ()), self.codelist or self.codeList or "")


class PlacementBody(BaseModel):
    """Which variables are in columns and which in rows."""

    model_config = LOOSE

    heading: list[Name] | None = None
    stub: list[Name] | None = None


class SelectionBody(BaseModel):
    """A selection; an empty one means the default."""

    model_config = LOOSE

    selection: list[VariableBody] | None = Field(default=None, max_length=100)
    placement: PlacementBody | None = None

    def picked(self) -> dict[str, Picked]:
        """What is selected of each variable."""
        return once((one.variableCode, one.picked()) for one in self.selection or ())

    def asked(self, form: str, parameters: list[str] | None) -> Asked:
        """The requested shape."""
        placement = self.placement or PlacementBody()
        return asked_of(form, parameters, placement.heading, placement.stub)


class SavedBody(BaseModel):
    """A saved query of PxWebApi."""

    model_config = LOOSE

    tableId: Name  # noqa: N815
    selection: SelectionBody = SelectionBody()
    language: Name | None = None
    outputFormat: Name | None = None  # noqa: N815
    outputFormatParams: list[Name] | None = None  # noqa: N815

    def asked(self) -> Asked:
        """The shape that was requested when it was saved."""
        return self.selection.asked(self.outputFormat or JSON_STAT, self.outputFormatParams)


class FilterBody(BaseModel):
    """What PxWebApi 1 selects of a variable: a kind of filter and its values."""

    model_config = LOOSE

    filter: Name = "item"
    values: Codes = []

    def picked(self, variable: str) -> Picked:
        """The same as PxWebApi 2 selects it; only the filter ``all`` has patterns."""
        kind, _, name = self.filter.partition(":")
        match kind.strip().lower():
            case "all":
                return Picked(tuple(self.values) or ("*",))
            case "top":
                return Picked((f"TOP({self.values[0] if self.values else ''})",))
            case "item" | "vs" | "agg":
                codelist = CODELIST + name.strip().removeprefix(CODELIST) if name else ""
                return Picked(tuple(self.values), codelist, literal=True)
        raise wrong(
            variable,
            f"has the filter {self.filter[:60]!r}",
            "write item, all, top, vs:CODELIST or agg:CODELIST",
        )


class QueryItemBody(BaseModel):
    """One variable of a query of PxWebApi 1."""

    model_config = LOOSE

    code: Name
    selection: FilterBody = FilterBody()


class ResponseBody(BaseModel):
    """The requested format of PxWebApi 1."""

    model_config = LOOSE

    format: Name = "json"


class TableQueryBody(BaseModel):
    """A query of PxWebApi 1; an empty one means the default."""

    model_config = LOOSE

    query: list[QueryItemBody] = Field(default=[], max_length=100)
    response: ResponseBody = ResponseBody()

    def picked(self) -> dict[str, Picked]:
        """What is selected of each variable."""
        return once((one.code, one.selection.picked(one.code)) for one in self.query)
