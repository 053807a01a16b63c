"""Answers as JSON-stat 2.0 datasets: null and a status where a cell is withheld; it owns that format's words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from discreet.schema.codelist import TOTAL
from discreet.serve.answer import WITHHELD, Answer, AnswerAxis
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.problems import areas_json
from discreet.serve.query import Query, to_json

CONTENTS = "ContentsCode"  # the dimension that says what is counted, as PxWeb names it
CONTENTS_LABEL = "contents"
NO_NAME = "COUNT"


def dataset(answer: Answer, catalogue: Catalogue) -> bytes:
    """An answer as a dataset; one without axes gets the dimension of what is counted, since readers need one."""
    axes = {axis.variable: dimension(axis) for axis in answer.axes}
    head = {
        **head_of(label_of(answer.query), catalogue, axes, places_of(answer.axes)),
        "extension": extension(answer),
    }
    if not axes:
        add_contents(head, answer.query)
    return with_values(head, answer)


def head_of(
    label: str, catalogue: Catalogue, dimensions: Mapping[str, Mapping[str, Any]], places: Iterable[str]
) -> dict[str, Any]:
    """All of a dataset but its values and its extension."""
    role = {"geo": list(places)}
    return {
        "version": "2.0",
        "class": "dataset",
        "label": label,
        "source": catalogue.name,
        "note": [],
        "id": list(dimensions),
        "size": [len(one["category"]["index"]) for one in dimensions.values()],
        "dimension": dict(dimensions),
        "role": {name: held for name, held in role.items() if held},
    }


def with_values(head: dict[str, Any], answer: Answer) -> bytes:
    """Put the values, the status of those withheld and the notes to a head."""
    values: list[int | None] = answer.values.tolist()
    missing = np.flatnonzero(answer.withheld).tolist()
    for cell in missing:
        values[cell] = None
    whole = {**head, "note": notes(answer), "value": values}
    if missing:
        whole["status"] = dict.fromkeys(map(str, missing), WITHHELD)
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def notes(answer: Answer) -> list[str]:
    """What a reader of the table must know."""
    said = [answer.additivity, answer.noise, *answer.warnings]
    if answer.withheld.any():
        said.append(
            "Cells with the status withheld belong to areas that the rules of the office do not show."
        )
    return said


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


def dimension(axis: AnswerAxis) -> dict[str, Any]:
    """One axis of an answer."""
    return dimension_of(axis.breakdown, axis.codes, axis.labels, axis.parents)


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


def add_contents(head: dict[str, Any], query: Query) -> None:
    """Add the dimension that says what is counted: one code."""
    code = contents_code(query.count)
    counted = f"{query.unit} with {query.count} = 1" if query.count else query.unit
    head["id"].append(CONTENTS)
    head["size"].append(1)
    head["role"]["metric"] = [CONTENTS]
    head["dimension"][CONTENTS] = {
        "label": CONTENTS_LABEL,
        "category": {
            "index": {code: 0},
            "label": {code: counted},
            "unit": {code: {"base": query.unit, "decimals": 0}},
        },
        "extension": {
            "elimination": False,
            "show": "value",
            "refperiod": {},
            "measuringType": {code: "Stock"},
        },
    }


def contents_code(count: str) -> str:
    """The code of what is counted."""
    return count or NO_NAME


def label_of(query: Query) -> str:
    """A title for a question."""
    counted = f"{query.unit} with {query.count} = 1" if query.count else query.unit
    by = ", ".join(axis.breakdown for axis in query.axes)
    return " ".join(
        filter(None, [counted, f"by {by}" if by else "", f"where {query.where}" if query.where else ""])
    )
