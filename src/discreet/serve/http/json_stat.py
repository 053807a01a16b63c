"""JSON-stat as clients of PxWeb read it: codes by position, the elimination value, and what is counted."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from orjson import Fragment

from discreet.formats.dataset import NO_COLUMN, Dataset, DatasetAxis
from discreet.formats.json_stat import NO_NOTES, dimension, fragment, head, write_json_stat
from discreet.programme.codelist import TOTAL
from discreet.programme.labels import Labels
from discreet.serve.answer import Answer
from discreet.serve.catalogue import Catalogue
from discreet.serve.dataset import dataset_of
from discreet.serve.http.problems import areas_json
from discreet.serve.query import Query, to_json
from discreet.text.phrase import Language, phrase, said

CONTENTS = "ContentsCode"  # the dimension of what is counted, as PxWeb names it
CONTENTS_LABEL = phrase("contents")


def json_stat(
    answer: Answer, catalogue: Catalogue, limits: Mapping[str, NDArray[np.float64]] | None = None
) -> bytes:
    """An answer as a dataset; one without axes gets the dimension of what is counted, since readers need one.

    ``limits`` of the true counts are members of the extension, in the order of the values.
    """
    dataset = dataset_of(answer, catalogue)
    found = {
        name: [None if np.isnan(one) else int(one) for one in ends] for name, ends in (limits or {}).items()
    }
    extra = answer_head(dataset, {**extension(answer), **found})
    if not dataset.axes:
        add_contents(extra, answer.query, catalogue.labels, answer.language)
    return encoded(dataset, extra)


def answer_head(dataset: Dataset, extension: Mapping[str, Any]) -> dict[str, Any]:
    """All of an answer's dataset but its values."""
    return head_of(
        label=dataset.title,
        source=dataset.source,
        notes=dataset.all_notes,
        dimensions={axis.variable: _fragment(axis) for axis in dataset.axes},
        sizes=dataset.shape,
        extension=extension,
        places=[axis.variable for axis in dataset.axes if axis.is_place],
    )


def head_of(
    *,
    label: str,
    source: str,
    notes: Iterable[str],
    dimensions: Mapping[str, Any],
    sizes: Iterable[int],
    extension: Mapping[str, Any],
    places: Iterable[str],
) -> dict[str, Any]:
    """All of a dataset but its values; its role member is there even where it is empty."""
    extra = head(
        label=label,
        source=source,
        notes=notes,
        dimensions=dimensions,
        sizes=sizes,
        extension=extension,
        places=places,
    )
    return {"role": {}, **extra}


_FRAGMENTS: WeakKeyDictionary[DatasetAxis, Fragment] = WeakKeyDictionary()  # as long as an axis is in use


def _fragment(axis: DatasetAxis) -> Fragment:
    """The dimension of an axis as JSON, made once."""
    found = _FRAGMENTS.get(axis)
    if found is None:
        found = _FRAGMENTS[axis] = fragment(
            dimension_of(axis.label, axis.codes, axis.labels, axis.parents, axis.notes, axis.code_notes)
        )
    return found


def encoded(dataset: Dataset, head: Mapping[str, Any]) -> bytes:
    """A dataset as a file."""
    file = io.BytesIO()
    write_json_stat(dataset, file, head)
    return file.getvalue()


def encoded_1(dataset: Dataset, head: Mapping[str, Any]) -> bytes:
    """The same in the form of JSON-stat 1: one of several by name, its ids and roles among its dimensions."""
    inner = {name: head[name] for name in ("id", "size", "role")}
    outer = {name: value for name, value in head.items() if name not in {*inner, "version", "class"}}
    return b'{"dataset":%b}' % encoded(dataset, {**outer, "dimension": {**head["dimension"], **inner}})


def extension(answer: Answer) -> dict[str, Any]:
    """What JSON-stat has no member for."""
    return {
        "query": to_json(answer.query),
        "id": answer.query.id,
        "noise": answer.noise,
        "additivity": answer.additivity,
        "warnings": list(answer.warnings),
        "blocked": areas_json(answer.blocked),
        "blocked_count": len(answer.blocked),
    }


def dimension_of(
    label: str,
    codes: tuple[str, ...],
    labels: tuple[str, ...],
    parents: tuple[str, ...],
    notes: tuple[str, ...] = (),
    code_notes: Mapping[str, str] = NO_NOTES,
) -> dict[str, Any]:
    """A dimension: codes by position, which clients look up by code; children; notes; the elimination value."""
    made = dimension(label, codes, labels, parents, notes, code_notes)
    made["category"]["index"] = {code: place for place, code in enumerate(codes)}
    extra: dict[str, Any] = {
        "elimination": True,
        "show": "value" if len(set(labels)) == len(labels) else "code_value",
    }
    if TOTAL in codes:
        extra["eliminationValueCode"] = TOTAL
    return {**made, "extension": extra}


def add_contents(
    head: dict[str, Any], query: Query, labels: Labels, language: Language = Language.ENGLISH
) -> None:
    """Add the dimension of what is counted, with one code."""
    code, counted = contents_code(query.count), labels.counted(query.unit, query.count)
    head["id"].append(CONTENTS)
    head["size"].append(1)
    head["role"]["metric"] = [CONTENTS]
    head["dimension"][CONTENTS] = {
        "label": said(CONTENTS_LABEL, language),
        "category": {
            "index": {code: 0},
            "label": {code: said(counted, language)},
            "unit": {code: {"base": said(labels.unit(query.unit), language), "decimals": 0}},
        },
        "extension": {
            "elimination": False,
            "show": "value",
            "refperiod": {},
            "measuringType": {code: "Stock"},
            "codelists": [],
        },
    }


def contents_code(count: str) -> str:
    """The code of what is counted."""
    return count or NO_COLUMN
