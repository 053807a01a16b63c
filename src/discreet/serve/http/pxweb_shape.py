"""How PxWebApi shapes data: formats, their parameters, and which variables stand across and which down.

It owns what may be combined; the files are written elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from discreet.serve.http.json_stat import CONTENTS
from discreet.serve.http.layout import Layout, Texts
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_select import split_values
from discreet.serve.query import Query
from discreet.words.phrase import phrase

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
    """What a client asks of the shape, as it says it."""

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
    """What an address or a body asks for; values come with commas or several times."""
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
    """Where variables stand: those that only one side leaves out go to the other; by default the last stands across."""
    if not heading and not stub:
        return Placement(tuple(names[-2:]), tuple(names[:-2]))
    across, down = _known(heading, names), _known(stub, names)
    left = [name for name in names if name not in across and name not in down]
    if across and down and left == [CONTENTS]:
        across, left = (*across, CONTENTS), []
    if len({*across, *down}) < len(across) + len(down) or (across and down and left):
        words = phrase("heading and stub name each selected variable once, or one of them is left out.")
        raise _mistake(words)
    return Placement(across or tuple(left), down or tuple(left if across else ()))


def _known(given: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    spelled = {name.lower(): name for name in names}
    for name in given:
        if name.lower() not in spelled:
            words = phrase("heading and stub name selected variables: {names}.", names=tuple(names))
            raise _mistake(words)
    return tuple(spelled[name.lower()] for name in given)


def _layout(asked: Asked, across: tuple[str, ...]) -> Layout:
    wanted = {part.lower() for part in asked.parameters}
    unknown = wanted - {*SEPARATORS, *SHOWN, TITLE}
    if unknown:
        raise _mistake(phrase("outputFormatParams are {names}.", names=PARAMETERS))
    if wanted - APPLICABLE.get(asked.form, set()):
        words = phrase("One of outputFormatParams does not apply to {form}.", form=asked.form)
        raise _mistake(words)
    texts = [SHOWN[part] for part in sorted(wanted & SHOWN.keys())]
    separators = [SEPARATORS[part] for part in sorted(wanted & SEPARATORS.keys())]
    if len(texts) > 1 or len(separators) > 1:
        words = phrase("Of the Use.. and of the Separator.. parameters one can be given.")
        raise _mistake(words)
    return Layout(
        columns=across,
        texts=texts[0] if texts else Texts.BOTH,
        separator=separators[0] if separators else ",",
        title=TITLE in wanted,
    )


def _flat(given: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(part for text in given or () for part in split_values(text))


def _mistake(words: str) -> HttpProblem:
    return HttpProblem(400, words, kind="mistakes")
