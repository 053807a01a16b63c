from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from discreet.io.serialize import json_text, to_json


class Kind(StrEnum):
    SMALL = "small one"


class Column(IntEnum):
    FIRST = 0


class Word(Enum):
    NONE = "none"


@dataclass(frozen=True)
class Inner:
    kind: Kind
    share: Fraction


@dataclass(frozen=True)
class Outer:
    inner: Inner
    by: Mapping[Column, tuple[Inner, ...]]

    def as_json(self) -> Mapping[str, object]:
        return {"all": [self.inner], **vars(self)}


def test_typed_values_become_plain_ones() -> None:
    inner = Inner(Kind.SMALL, Fraction(1, 4))
    plain = {"kind": "small one", "share": 0.25}
    assert to_json(Outer(inner, {Column.FIRST: (inner,)})) == {
        "all": [plain],
        "inner": plain,
        "by": {"first": [plain]},
    }
    assert to_json({0.5: np.int64(3), 2: np.float64(0.5), "at": Path("a/b"), Word.NONE: Word.NONE}) == {
        "0.5": 3,
        "2": 0.5,
        "at": "a/b",
        "none": "none",
    }
    assert type(to_json(np.int64(3))) is int
    assert json_text({"ä": (True, None)}) == '{"ä": [true, null]}'


@pytest.mark.parametrize("value", [np.zeros(2), {1, 2}, object(), Inner, b"secret"])
def test_what_is_no_document_is_refused_without_its_content(value: object) -> None:
    with pytest.raises(TypeError, match=r"^\w+ cannot be written as JSON$"):
        to_json(value)
