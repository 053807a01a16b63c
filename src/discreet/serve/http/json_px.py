"""Answers as the JSON of PxWebApi 1 (json, json-px): columns, keys and values of cells; it owns that form."""

from __future__ import annotations

from itertools import product

from discreet.serve.answer import Answer
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.json_stat import as_bytes, contents_code, notes
from discreet.serve.http.px_file import WITHHELD_SYMBOL
from discreet.words.phrase import said

DIMENSION, CONTENT = "d", "c"


def json_px(answer: Answer, catalogue: Catalogue, title: str) -> bytes:
    """An answer, its values as texts, as that API has always written them."""
    labels, query = catalogue.labels, answer.query
    columns = [
        {"code": axis.variable, "text": labels.axis(axis.breakdown), "type": DIMENSION}
        for axis in answer.axes
    ]
    text = said(labels.counted(query.unit, query.count), answer.language)
    counted = {"code": contents_code(query.count), "text": text}
    told = {
        "columns": [*columns, {**counted, "comment": " ".join(notes(answer)), "type": CONTENT}],
        "comments": [],
        "data": _cells(answer),
        "metadata": [{"infofile": "", "updated": "", "label": title, "source": catalogue.heading}],
    }
    return as_bytes(told)


def _cells(answer: Answer) -> list[dict[str, list[str]]]:
    keys = product(*(axis.codes for axis in answer.axes))
    shown = zip(answer.values.tolist(), answer.withheld.tolist(), strict=True)
    values = (WITHHELD_SYMBOL if withheld else str(value) for value, withheld in shown)
    return [{"key": list(key), "values": [value]} for key, value in zip(keys, values, strict=True)]
