"""Answers as PX files (the format of PC-Axis and PxWeb); it owns keywords, quoting and the order of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from discreet.programme.codelist import TOTAL
from discreet.programme.labels import Labels
from discreet.serve.answer import Answer, AnswerAxis
from discreet.serve.catalogue import Catalogue
from discreet.text.phrase import phrase, said

LONGEST = 250  # characters of a line
MEDIA_TYPE = "application/octet-stream"
WITHHELD_SYMBOL = ".."  # what readers take for a number that may not be shown; DATASYMBOL2 names it
COUNTED = "contents"


@dataclass(frozen=True)
class Named:
    """What a file is called: a title, and the id and the language of a declared table."""

    title: str
    table: str = ""
    language: str = ""


def px_file(answer: Answer, catalogue: Catalogue, named: Named, columns: Sequence[str] = ()) -> bytes:
    """An answer as a PX file: some variables in the heading, or the last, and the others in the stub."""
    return ("\n".join(_lines(answer, catalogue, named, columns)) + "\n").encode()


def _lines(answer: Answer, catalogue: Catalogue, named: Named, columns: Sequence[str]) -> Iterator[str]:
    """The keywords in the order that the description of the format recommends."""
    labels = catalogue.labels
    axes = answer.axes or (_counted(answer, labels),)
    across = _across(axes, columns)
    down = [place for place in range(len(axes)) if place not in across]
    shown = _names(axes, labels)
    counted = said(labels.counted(answer.query.unit, answer.query.count), answer.language)
    yield 'CHARSET="ANSI";\nAXIS-VERSION="2013";\nCODEPAGE="utf-8";'
    if named.language:
        yield _keyword("LANGUAGE", named.language)
    if named.table:
        yield _keyword("TABLEID", named.table)
    yield "DECIMALS=0;\nSHOWDECIMALS=0;"
    yield _keyword("MATRIX", named.table or answer.query.id[:20])
    yield "AGGREGALLOWED=NO;"
    yield _keyword("SUBJECT-CODE", catalogue.agency)
    yield _keyword("SUBJECT-AREA", catalogue.heading)
    yield "COPYRIGHT=NO;"
    yield _keyword("DESCRIPTION", named.title)
    yield _keyword("TITLE", named.title)
    yield "DESCRIPTIONDEFAULT=YES;"
    yield _keyword("CONTENTS", counted)
    yield _keyword("UNITS", labels.unit(answer.query.unit))
    if down:
        yield _listed("STUB", [shown[place] for place in down])
    yield _listed("HEADING", [shown[place] for place in across])
    yield from _variables(
        [axes[place] for place in [*down, *across]], [shown[place] for place in [*down, *across]]
    )
    yield _keyword("SOURCE", f"{catalogue.heading} {catalogue.version}")
    yield _keyword("NOTEX", " ".join([answer.additivity, answer.noise, *answer.warnings]))
    yield _keyword("DATASYMBOL2", said(phrase("withheld"), answer.language))
    yield "DATA="
    yield from _data(answer, down, across)


def _across(axes: Sequence[AnswerAxis], columns: Sequence[str]) -> list[int]:
    places = {axis.variable: place for place, axis in enumerate(axes)}
    return [places[name] for name in columns if name in places] or [len(axes) - 1]


def _names(axes: Sequence[AnswerAxis], labels: Labels) -> list[str]:
    """What the variables are called; with their codes where two are alike, since PX tells them apart by that."""
    names = [_plain(labels.variable(axis.variable)) for axis in axes]
    return [
        name if names.count(name) == 1 else f"{name} ({axis.variable})"
        for name, axis in zip(names, axes, strict=True)
    ]


def _counted(answer: Answer, labels: Labels) -> AnswerAxis:
    """The axis of a table without any: a PX file has at least one."""
    return AnswerAxis(COUNTED, COUNTED, ("COUNT",), (labels.unit(answer.query.unit),), ("",), (0,), False)


def _variables(axes: Sequence[AnswerAxis], names: Sequence[str]) -> Iterator[str]:
    """What is said of each variable, one keyword after the other."""
    both = list(zip(axes, names, strict=True))
    yield from (_listed(f'VALUES("{name}")', _distinct(axis)) for axis, name in both)
    yield from (_listed(f'CODES("{name}")', axis.codes) for axis, name in both)
    yield from (_keyword(f'VARIABLECODE("{name}")', axis.variable) for axis, name in both)
    yield from (f'VARIABLE-TYPE("{name}")="G";' for axis, name in both if axis.is_place)
    for axis, name in both:
        if TOTAL in axis.codes:
            yield _listed(f'ELIMINATION("{name}")', [_distinct(axis)[axis.codes.index(TOTAL)]])


def _distinct(axis: AnswerAxis) -> list[str]:
    """The labels; with their codes where two are alike, since PX tells values apart by their texts."""
    if len(set(axis.labels)) == len(axis.labels):
        return list(axis.labels)
    return [f"{code} {label}" for code, label in zip(axis.codes, axis.labels, strict=True)]


def _data(answer: Answer, down: Sequence[int], across: Sequence[int]) -> Iterator[str]:
    """A line for each row of the stub, with a space at its end."""
    shape = answer.shape or (1,)
    texts = np.where(answer.withheld, f'"{WITHHELD_SYMBOL}"', answer.values.astype(str))
    width = prod(shape[place] for place in across)
    rows = texts.reshape(shape).transpose([*down, *across]).reshape(-1, width)
    last = len(rows) - 1
    for number, row in enumerate(rows):
        yield " ".join(row.tolist()) + (";" if number == last else " ")


def _keyword(name: str, text: str) -> str:
    """A text, over several lines where it is long; it may hold no double quotes."""
    plain = _plain(text)
    room = LONGEST - len(name) - 4
    parts = [plain[start : start + room] for start in range(0, len(plain), room)] or [""]
    return f"{name}=" + "\n".join(f'"{part}"' for part in parts) + ";"


def _listed(name: str, texts: Sequence[str]) -> str:
    return f"{name}=" + ",\n".join(_short_lines(f'"{_plain(text)}"' for text in texts)) + ";"


def _short_lines(items: Iterable[str]) -> Iterator[str]:
    line = ""
    for item in items:
        if line and len(line) + len(item) > LONGEST // 2:
            yield line
            line = ""
        line = f"{line},{item}" if line else item
    yield line


def _plain(text: str) -> str:
    return text.replace('"', "'").replace("\r", " ").replace("\n", " ")
