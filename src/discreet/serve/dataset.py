"""Answers as datasets, the input of the writers of all formats; and titles for questions."""

from __future__ import annotations

from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from discreet.formats.dataset import NO_COLUMN, Dataset, DatasetAxis, defined
from discreet.programme.definitions import NO_DEFINITIONS
from discreet.programme.labels import Labels
from discreet.programme.release import default_agency
from discreet.serve.answer import Answer, AnswerAxis
from discreet.serve.catalogue import Catalogue
from discreet.serve.query import Query
from discreet.text.phrase import Language, phrase, said


def dataset_of(
    answer: Answer, catalogue: Catalogue, *, title: str = "", table: str = "", language_tag: str = ""
) -> Dataset:
    """An answer with the labels of a catalogue; ``title`` and ``table`` are those of a declared table."""
    query, labels = answer.query, catalogue.labels
    return Dataset(
        id=table or query.id,
        table=table,
        title=title or title_in(answer, labels),
        source=said(catalogue.heading, answer.language),
        agency=catalogue.agency,
        version=catalogue.version,
        counted=said(labels.counted(query.unit, query.count), answer.language),
        unit=said(labels.unit(query.unit), answer.language),
        contents=query.count or NO_COLUMN,
        axes=tuple(_axis(axis, catalogue, answer.language) for axis in answer.axes),
        values=answer.values,
        withheld=answer.withheld,
        notes=(answer.additivity, answer.noise, *answer.warnings),
        language=answer.language,
        language_tag=language_tag,
    )


def keys_only(*, table: str, title: str, agency: str, version: str, axes: tuple[DatasetAxis, ...]) -> Dataset:
    """The axes of a table without its values, which need no question to the table builder."""
    return Dataset(
        id=table,
        table=table,
        title=title,
        source="",
        agency=agency,
        version=version,
        counted="",
        unit="",
        axes=axes,
        values=np.zeros(prod(map(len, axes)), dtype=np.int64),
    )


_AXES: WeakKeyDictionary[AnswerAxis, tuple[Catalogue, Language, DatasetAxis]] = WeakKeyDictionary()


def _axis(axis: AnswerAxis, catalogue: Catalogue, language: Language) -> DatasetAxis:
    """An axis with its labels; made once as long as the axis is in use, as those with all codes of a breakdown are."""
    known = _AXES.get(axis)
    if known is not None and known[0] is catalogue and known[1] is language:
        return known[2]
    made = _labelled(axis, catalogue, language)
    _AXES[axis] = catalogue, language, made
    return made


def _labelled(axis: AnswerAxis, catalogue: Catalogue, language: Language) -> DatasetAxis:
    labels = catalogue.labels
    known = catalogue.variables.get(axis.variable)
    definitions = NO_DEFINITIONS if known is None else known.codelist.definitions
    return DatasetAxis(
        variable=axis.variable,
        name=said(labels.variable(axis.variable), language),
        label=said(labels.axis(axis.breakdown), language),
        codes=axis.codes,
        labels=axis.labels,
        parents=axis.parents,
        depths=axis.depths,
        levels=axis.levels,
        is_place=axis.is_place,
        **defined(axis.codes, labels.definition(axis.variable), definitions, language),
    )


def title_in(answer: Answer, labels: Labels) -> str:
    """A title for an answer, in its language."""
    return said(label_of(answer.query, labels), answer.language)


def label_of(query: Query, labels: Labels) -> str:
    """A title for a question."""
    axes = [axis.breakdown for axis in query.axes]
    return labels.title(labels.counted(query.unit, query.count), axes, query.where)


def citation(query: Query, catalogue: Catalogue, link: str = "") -> str:
    """How to cite the answer to a question; an office is named where it has declared itself."""
    named: dict[str, object] = {
        "agency": catalogue.agency,
        "heading": catalogue.heading,
        "version": catalogue.version,
        "title": label_of(query, catalogue.labels),
        "link": link or phrase("from its table builder"),
    }
    if catalogue.agency == default_agency(catalogue.name):
        return phrase("{heading}, version {version}, table “{title}”, {link}", **named)
    return phrase("{agency}: {heading}, version {version}, table “{title}”, {link}", **named)
