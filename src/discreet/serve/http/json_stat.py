"""Answers as JSON-stat 2.0 datasets: null and a status where a cell is withheld; it owns that format's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import orjson

from discreet.programme.codelist import TOTAL
from discreet.programme.labels import Labels
from discreet.serve.answer import WITHHELD, Answer, AnswerAxis
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.problems import areas_json
from discreet.serve.query import Query, to_json
from discreet.text.phrase import Language, phrase, said

CONTENTS = "ContentsCode"  # the dimension that says what is counted, as PxWeb names it
CONTENTS_LABEL = phrase("contents")
NO_NAME = "COUNT"


def dataset(answer: Answer, catalogue: Catalogue) -> bytes:
    """An answer as a dataset; one without axes gets the dimension of what is counted, since readers need one."""
    labels = catalogue.labels
    axes = dimensions_of(answer, labels)
    head = {
        **head_of(title_in(answer, labels), catalogue, axes, places_of(answer.axes)),
        "extension": extension(answer),
    }
    if not axes:
        add_contents(head, answer.query, labels, answer.language)
    return as_bytes(with_values(head, answer))


def head_of(
    label: str, catalogue: Catalogue, dimensions: Mapping[str, Mapping[str, Any]], places: Iterable[str]
) -> dict[str, Any]:
    """All of a dataset but its values and its extension."""
    role = {"geo": list(places)}
    return {
        "version": "2.0",
        "class": "dataset",
        "label": label,
        "source": catalogue.heading,
        "note": [],
        "id": list(dimensions),
        "size": [len(one["category"]["index"]) for one in dimensions.values()],
        "dimension": dict(dimensions),
        "role": {name: held for name, held in role.items() if held},
    }


def with_values(head: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """Put the values, the status of those withheld and the notes to a head."""
    missing = np.flatnonzero(answer.withheld).tolist()
    if not missing:
        return {**head, "note": notes(answer), "value": answer.values}
    values: list[int | None] = answer.values.tolist()
    for cell in missing:
        values[cell] = None
    status = dict.fromkeys(map(str, missing), WITHHELD)
    return {**head, "note": notes(answer), "value": values, "status": status}


def version_1(whole: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset in the form of JSON-stat 1: one of several by name, its ids and roles among its dimensions."""
    inner = {name: whole[name] for name in ("id", "size", "role")}
    outer = {name: held for name, held in whole.items() if name not in {*inner, "version", "class"}}
    return {"dataset": {**outer, "dimension": {**whole["dimension"], **inner}}}


def as_bytes(whole: Mapping[str, Any]) -> bytes:
    """A dataset as a file; all of it was made here, so that its numbers fit into 64 bits and its texts into UTF-8."""
    return orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY)


def notes(answer: Answer) -> list[str]:
    """What a reader of the table must know."""
    told = [answer.additivity, answer.noise, *answer.warnings]
    if answer.withheld.any():
        words = phrase(
            "Cells with the status withheld belong to areas that the rules of the office do not show."
        )
        told.append(said(words, answer.language))
    return told


def extension(answer: Answer) -> dict[str, Any]:
    """What JSON-stat has no word for."""
    return {
        "query": to_json(answer.query),
        "id": answer.query.id,
        "noise": answer.noise,
        "additivity": answer.additivity,
        "warnings": list(answer.warnings),
        "blocked": areas_json(answer.blocked),
        "blocked_count": len(answer.blocked),
    }


def dimensions_of(answer: Answer, labels: Labels) -> dict[str, dict[str, Any]]:
    """The axes of an answer, by variable."""
    return {
        axis.variable: dimension_of(labels.axis(axis.breakdown), axis.codes, axis.labels, axis.parents)
        for axis in answer.axes
    }


def dimension_of(
    label: str, codes: tuple[str, ...], labels: tuple[str, ...], parents: tuple[str, ...]
) -> dict[str, Any]:
    """A dimension: codes by position, which clients look up by code; children; what stands for all."""
    children: dict[str, list[str]] = {}
    for code, parent in zip(codes, parents, strict=True):
        if parent:
            children.setdefault(parent, []).append(code)
    category: dict[str, Any] = {
        "index": {code: place for place, code in enumerate(codes)},
        "label": dict(zip(codes, labels, strict=True)),
    }
    if children:
        category["child"] = children
    told: dict[str, Any] = {
        "elimination": True,
        "show": "value" if len(set(labels)) == len(labels) else "code_value",
    }
    if TOTAL in codes:
        told["eliminationValueCode"] = TOTAL
    return {"label": label, "category": category, "extension": told}


def places_of(axes: Iterable[AnswerAxis]) -> list[str]:
    """The axes that are places."""
    return [axis.variable for axis in axes if axis.is_place]


def add_contents(
    head: dict[str, Any], query: Query, labels: Labels, language: Language = Language.ENGLISH
) -> None:
    """Add the dimension that says what is counted: one code."""
    code, counted = contents_code(query.count), labels.counted(query.unit, query.count)
    head["id"].append(CONTENTS)
    head["size"].append(1)
    head["role"]["metric"] = [CONTENTS]
    head["dimension"][CONTENTS] = {
        "label": said(CONTENTS_LABEL, language),
        "category": {
            "index": {code: 0},
            "label": {code: said(counted, language)},
            "unit": {code: {"base": labels.unit(query.unit), "decimals": 0}},
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
    return count or NO_NAME


def title_in(answer: Answer, labels: Labels) -> str:
    """A title for an answer, in its language."""
    return said(label_of(answer.query, labels), answer.language)


def label_of(query: Query, labels: Labels) -> str:
    """A title for a question."""
    axes = [axis.breakdown for axis in query.axes]
    return labels.title(labels.counted(query.unit, query.count), axes, query.where)
