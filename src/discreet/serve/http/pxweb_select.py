"""Selections of PxWebApi 2: value expressions, codelists, defaults and eliminated variables become a question.

It owns what an expression means; the shapes of requests are ``pxweb``'s, the answer is the builder's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from math import prod

from discreet.schema.codelist import Breakdown
from discreet.serve.catalogue import Catalogue, ServedTable
from discreet.serve.http.json_stat import CONTENTS, contents_code
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import Axis, Query

DEFAULT_CELLS = 2_000  # of a table that is asked for without a selection, where it can be that small
CODELIST = "vs_"  # what PxWeb puts before the id of a set of values
_CALL = re.compile(r"\[?\s*(TOP|BOTTOM|FROM|TO|RANGE)\s*\((.*)\)\s*\]?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Picked:
    """What a client selects of one variable."""

    expressions: tuple[str, ...]
    codelist: str = ""


@dataclass(frozen=True, eq=False)
class PxTable:
    """A declared table with its axes."""

    served: ServedTable
    axes: tuple[Breakdown, ...]

    def axis(self, variable: str) -> Breakdown:
        """An axis by the name of its variable, in whatever case."""
        for axis in self.axes:
            if axis.variable.lower() == variable.lower():
                return axis
        known = ", ".join([*(axis.variable for axis in self.axes), CONTENTS])
        raise _wrong(variable, "is no variable of this table", f"choose from {known}")


def px_tables(catalogue: Catalogue) -> dict[str, PxTable]:
    """The declared tables, by id."""
    made = {}
    for served in catalogue.tables:
        axes = [catalogue.breakdown(name) for name in served.axes]
        made[served.id] = PxTable(served, tuple(axis for axis in axes if axis is not None))
    return made


def question_of(table: PxTable, selection: Mapping[str, Picked], catalogue: Catalogue) -> Query:
    """The question that a selection asks: variables that are left out are eliminated; no selection is the default."""
    served = table.served
    if not selection:
        axes = [Axis(axis.full_name, codes) for axis, codes in default_codes(table)]
        return Query(served.unit, tuple(axes), served.base, served.count)
    wanted: dict[str, tuple[str, ...]] = {}
    for name, picked in selection.items():
        if name.lower() == CONTENTS.lower():
            expanded(picked.expressions, (contents_code(served.count),), CONTENTS)
            continue
        axis = table.axis(name)
        codes = codes_of(axis, picked.codelist, catalogue)
        found = expanded(picked.expressions, codes, axis.variable)
        if found:
            wanted[axis.variable] = found
    axes = [Axis(axis.full_name, wanted[axis.variable]) for axis in table.axes if axis.variable in wanted]
    return Query(served.unit, tuple(axes), served.base, served.count)


def default_codes(table: PxTable) -> Iterator[tuple[Breakdown, tuple[str, ...]]]:
    """All codes, or where that is too much the highest levels of the longest axes, down to the total alone."""
    levels = [int(axis.depths.max()) for axis in table.axes]

    def kept(place: int) -> tuple[str, ...]:
        axis = table.axes[place]
        return tuple(
            code
            for code, depth in zip(axis.codes, axis.depths.tolist(), strict=True)
            if depth <= levels[place]
        )

    codes = [kept(place) for place in range(len(levels))]
    while prod(map(len, codes)) > DEFAULT_CELLS and any(levels):
        longest = max(
            (place for place, level in enumerate(levels) if level), key=lambda place: len(codes[place])
        )
        levels[longest] -= 1
        codes[longest] = kept(longest)
    yield from zip(table.axes, codes, strict=True)


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
        raise _wrong(axis.variable, f"has no codelist {codelist[:60]!r}", f"choose from {', '.join(known)}")
    return known[codelist].codes


def expanded(expressions: Sequence[str], codes: Sequence[str], variable: str) -> tuple[str, ...]:
    """The codes that expressions pick, each once, in the order of the codelist."""
    found: set[str] = set()
    held = set(codes)
    for expression in expressions:
        found.update([expression] if expression in held else _matching(expression, codes, variable))
    return tuple(code for code in codes if code in found)


def _matching(expression: str, codes: Sequence[str], variable: str) -> Sequence[str]:
    call = _CALL.fullmatch(expression.strip())
    if call is not None:
        return _called(call[1].upper(), [part.strip() for part in call[2].split(",")], codes, variable)
    quoted = expression.strip().removeprefix("[").removesuffix("]")
    if quoted in codes:
        return [quoted]
    if not set(expression) & {"*", "?"}:
        raise _wrong(variable, f"has no value {expression[:60]!r}", "see the metadata of the table")
    pattern = re.compile(translate(expression.replace("[", "[[]")))
    return [code for code in codes if pattern.match(code)]


def _called(name: str, given: list[str], codes: Sequence[str], variable: str) -> Sequence[str]:
    """TOP and BOTTOM count from the ends, FROM, TO and RANGE go by the order of the codes."""
    if name in ("TOP", "BOTTOM"):
        if not 1 <= len(given) <= 2 or not all(part.isdecimal() and len(part) < 10 for part in given):
            raise _wrong(variable, f"has {name} without a number", f"write {name}(5) or {name}(5,10)")
        count, skipped = int(given[0]), int(given[1]) if len(given) > 1 else 0
        ordered = codes if name == "TOP" else codes[::-1]
        return ordered[skipped : skipped + count]
    if len(given) != (2 if name == "RANGE" else 1) or any(code not in codes for code in given):
        raise _wrong(variable, f"has {name} with other than its values", "see the metadata of the table")
    first = codes.index(given[0]) if name != "TO" else 0
    last = codes.index(given[-1]) if name != "FROM" else len(codes) - 1
    return codes[first : last + 1]


def split_values(text: str) -> tuple[str, ...]:
    """Values between commas, those inside brackets kept together."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth <= 0:
            parts.append(text[start:place])
            start = place + 1
    return tuple(part.strip() for part in [*parts, text[start:]] if part.strip())


def _wrong(variable: str, value: str, remedy: str) -> HttpProblem:
    told = {"key": variable[:60], "value": value, "remedy": remedy}
    return HttpProblem(
        400, f"{variable[:60]} {value}; {remedy}", kind="mistakes", members={"problems": [told]}
    )
