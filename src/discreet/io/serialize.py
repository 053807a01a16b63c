"""JSON of typed results: dataclasses, enums, fractions and NumPy numbers as plain values."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class HasJson(Protocol):
    """A value whose JSON document differs from its fields."""

    def as_json(self) -> object:
        """The members of the document; they may be typed values themselves."""
        ...


def read_json(path: Path) -> Any:
    """The document in a file of JSON in UTF-8; ValueError for any other file, OSError for none that can be read.

    A named pipe is none: reading one without a writer never ends. Those that are open already are below /dev.
    Refused are also documents that are nested too deeply, and texts with half a character (\\ud800), which no file in
    UTF-8 can have.
    """
    if path.is_fifo() and not path.is_relative_to("/dev"):
        raise OSError(errno.EINVAL, "is a named pipe", str(path))
    text = path.read_text(encoding="utf-8")
    try:
        document = json.loads(text, parse_constant=_refused)
        if "\\ud" in text.lower():
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return document


def _refused(text: str) -> float:
    """NaN and Infinity are not JSON, and no browser reads them."""
    raise ValueError(text)


def to_json(value: object) -> Any:
    """Convert a value for the json module: by its ``as_json`` if it has one, otherwise a dataclass by its fields.

    An enum of numbers is written by its name, any other by its value. Arrays are refused: they contain the cells
    of an attack, which no document should list.
    """
    match value:
        case Enum():
            return value.name.lower() if isinstance(value.value, int) else value.value
        case np.generic():
            return value.item()
        case None | bool() | int() | float() | str():
            return value
        case HasJson():
            return to_json(value.as_json())
        case Mapping():
            return {str(to_json(key)): to_json(one) for key, one in value.items()}
        case list() | tuple():
            return [to_json(one) for one in value]
        case Fraction():
            return float(value)
        case PurePath():
            return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_json(getattr(value, one.name)) for one in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def json_text(value: object, indent: int | None = None) -> str:
    """A typed result as a JSON document."""
    return json.dumps(to_json(value), ensure_ascii=False, indent=indent)
