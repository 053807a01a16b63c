"""Answers as PX files (the format of PC-Axis and PxWeb); it owns keywords, quoting and the order of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np

from discreet.schema.codelist import TOTAL
from discreet.schema.labels import Labels
from discreet.serve.answer import Answer, AnswerAxis
from discreet.serve.catalogue import Catalogue

LONGEST = 250  # characters of a line
WITHHELD_SYMBOL = '"."'  # DATASYMBOL1
COUNTED = "contents"


def px_file(answer: Answer, catalogue: Catalogue, title: str) -> bytes:
    """An answer as a PX file: all axes but the last in the stub, the last in the heading."""
    return ("\n".join(_lines(answer, catalogue, title)) + "\n").encode()


def _lines(answer: Answer, catalogue: Catalogue, title: str) -> Iterator[str]:
    labels = catalogue.labels
    axes = answer.axes or (_counted(answer, labels),)
    stub, heading = ([], axes) if len(axes) == 1 else (axes[:-1], axes[-1:])
    yield 'CHARSET="ANSI";\nAXIS-VERSION="2013";\nCODEPAGE="utf-8";'
    yield "DECIMALS=0;\nSHOWDECIMALS=0;\nAGGREGALLOWED=NO;\nCOPYRIGHT=NO;"
    yield _keyword("MATRIX", answer.query.id[:20])
    yield _keyword("SUBJECT-CODE", catalogue.agency)
    yield _keyword("SUBJECT-AREA", catalogue.heading)
    yield _keyword("SOURCE", f"{catalogue.heading} {catalogue.version}")
    yield _keyword("CONTENTS", title)
    yield _keyword("UNITS", labels.unit(answer.query.unit))
    yield _keyword("TITLE", title)
    yield "DESCRIPTIONDEFAULT=YES;"
    yield _keyword("DESCRIPTION", title)
    if stub:
        yield _listed("STUB", [labels.variable(axis.variable) for axis in stub])
    yield _listed("HEADING", [labels.variable(axis.variable) for axis in heading])
    for axis in axes:
        yield from _variable(axis, labels)
    yield _keyword("DATASYMBOL1", "withheld")
    yield _keyword("NOTE", " ".join([answer.additivity, answer.noise, *answer.warnings]))
    yield "DATA="
    yield from _data(answer, prod(len(axis) for axis in heading))


def _counted(answer: Answer, labels: Labels) -> AnswerAxis:
    """The axis of a table without any: a PX file has at least one."""
    return AnswerAxis(COUNTED, COUNTED, ("COUNT",), (labels.unit(answer.query.unit),), ("",), (0,), False)


def _variable(axis: AnswerAxis, labels: Labels) -> Iterator[str]:
    texts, shown = _distinct(axis), _plain(labels.variable(axis.variable))
    if shown != axis.variable:
        yield _keyword(f'VARIABLECODE("{shown}")', axis.variable)
    yield _listed(f'VALUES("{shown}")', texts)
    yield _listed(f'CODES("{shown}")', axis.codes)
    if TOTAL in axis.codes:
        total = texts[axis.codes.index(TOTAL)]
        yield _listed(f'ELIMINATION("{shown}")', [total])
    if axis.is_place:
        yield f'VARIABLE-TYPE("{shown}")="G";'


def _distinct(axis: AnswerAxis) -> list[str]:
    """The labels; with their codes where two are alike, since PX tells values apart by their texts."""
    if len(set(axis.labels)) == len(axis.labels):
        return list(axis.labels)
    return [f"{code} {label}" for code, label in zip(axis.codes, axis.labels, strict=True)]


def _data(answer: Answer, width: int) -> Iterator[str]:
    texts = np.where(answer.withheld, WITHHELD_SYMBOL, answer.values.astype(str)).reshape(-1, width)
    last = len(texts) - 1
    for number, row in enumerate(texts):
        yield " ".join(row.tolist()) + (";" if number == last else "")


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
