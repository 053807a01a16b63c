"""How the values of a column become codes: missing values, bands of numbers, and ages from dates of birth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise
from math import inf, isnan
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from discreet.programme.codelist import TOTAL, Code, Codelist
from discreet.programme.filter import alternatives
from discreet.programme.section import Text

MOST_BANDS = 10_000
NOT_STATED = "Not stated"

Number = int | float
FROM_CODELIST = "codelist"


def _list_or_word(value: object) -> str:
    return "|limits" if isinstance(value, list) else "|word"


Limits = Annotated[
    Annotated[list[Number], Field(min_length=1, max_length=MOST_BANDS), Tag("|limits")]
    | Annotated[Literal["codelist"], Tag("|word")],
    Discriminator(_list_or_word),
]
MissingValues = Annotated[list[Text | Number], Field(min_length=1)]
Day = Text | date


@dataclass(frozen=True)
class Coding:
    """What a variable declares about the values of its column; by default they are codes as they are written."""

    missing: str | None = None  # the leaf of records without a value
    missing_values: tuple[str, ...] = ()  # texts and numbers that mean that there is no value
    bands: tuple[float, ...] = ()  # the lower limits of bands, rising; -inf where the first is open
    names: tuple[str, ...] = ()  # the leaves of the bands, where the codelist has its own
    whole: bool = True  # whether the limits are whole numbers
    reference_day: date | None = None  # the column has dates of birth, and the value is the age on that day

    @property
    def is_plain(self) -> bool:
        """Whether values are only looked up in the codelist."""
        return self == PLAIN

    def canonical(self) -> list[str]:
        """What changes the counts: two codings that code any value differently differ here."""
        day = self.reference_day.isoformat() if self.reference_day else ""
        return [
            json.dumps(self.missing),
            json.dumps(sorted(self.missing_values)),
            json.dumps([[str(limit) for limit in self.bands], self.names]),
            day,
        ]


PLAIN = Coding()

Finding = tuple[str, str, str]  # key, value, remedy


def coding_problems(
    bands: Sequence[Number] | str | None, missing: str | None, missing_values: object, day: Day | None
) -> Iterator[Finding]:
    """What is wrong with the declared keys, before a codelist is read."""
    if missing == TOTAL:
        yield "missing", repr(TOTAL), "use another code: that is the total"
    if missing_values is not None and missing is None:
        yield (
            "missing_values",
            "given without missing",
            'add missing = "CODE": the code that these records get',
        )
    if bands is not None and not isinstance(bands, str):
        yield from _band_problems(bands)
    if day is not None and _day(day) is None:
        yield "reference_day", str(day), 'write a day as "2021-05-09"'


def _band_problems(bands: Sequence[Number]) -> Iterator[Finding]:
    if any(isnan(limit) or limit == inf for limit in bands):
        yield "bands", "a limit that is no number", "give the lower limit of each band; the last band is open"
    elif any(low >= high for low, high in pairwise(bands)):
        yield "bands", "limits that do not rise", "give the lower limit of each band, from low to high"
    elif any(abs(limit) > 2**53 for limit in bands if limit != -inf):
        yield "bands", "a limit beyond 2^53", "use smaller numbers"
    elif tuple(bands) == (-inf,):
        yield "bands", "one band of all numbers", "give a limit, such as [-inf, 0]"


def coding(
    bands: Sequence[Number] | str | None,
    missing: str | None,
    missing_values: Sequence[str | Number] | None,
    day: Day | None,
) -> Coding:
    """The coding of a variable whose keys are sound; bands that are in the codelist follow with ``with_bands_of``."""
    limits = () if bands is None or isinstance(bands, str) else tuple(bands)
    return Coding(
        missing=missing,
        missing_values=tuple(dict.fromkeys(_written(value) for value in missing_values or ())),
        bands=tuple(float(limit) for limit in limits),
        whole=all(isinstance(limit, int) for limit in limits if limit != -inf),
        reference_day=None if day is None else _day(day),
    )


_BAND = re.compile(
    r"[A-Za-z]{0,3}(?:(?P<low>[0-9]+)(?:(?P<open>\+)|(?:-|T)(?P<last>[0-9]+))?|_?GE(?P<least>[0-9]+)|(?:_?LT|<)(?P<below>[0-9]+))"
)


def _band_of(code: str) -> tuple[float, float] | None:
    """The first number that a code names and the first after it: Y17, Y15-19, Y15T19, Y_LT15, 85+, Y_GE85."""
    found = _BAND.fullmatch(code)
    if found is None:
        return None
    if found["below"]:
        return 0, float(found["below"])
    if found["least"] or found["open"]:
        return float(found["least"] or found["low"]), inf
    low, last = float(found["low"]), float(found["last"] or found["low"])
    return (low, last + 1) if last >= low else None


def with_bands_of(found: Coding, tree: Codelist) -> Coding:
    """The bands that the leaves of a codelist name, but for the code of missing values; else ``ValueError``."""
    spans = {code: _band_of(code) for code in tree.leaf_codes if code != found.missing}
    unread = [code for code, span in spans.items() if span is None]
    if unread:
        raise ValueError(f"leaf {unread[0]!r} names no band")
    bands = sorted((span, code) for code, span in spans.items() if span is not None)
    for (span, code), (following, other) in pairwise(bands):
        if span[1] != following[0]:
            raise ValueError(f"leaves {code!r} and {other!r} overlap or leave a gap")
    if not bands or bands[-1][0][1] != inf:
        raise ValueError(f"the last leaf {bands[-1][1]!r} is not open" if bands else "no leaves")
    return replace(found, bands=tuple(span[0] for span, _ in bands), names=tuple(code for _, code in bands))


def _day(given: Day) -> date | None:
    if isinstance(given, datetime):
        return None
    if isinstance(given, date):
        return given
    try:
        return date.fromisoformat(given) if len(given) == len("2021-05-09") else None
    except ValueError:
        return None


def _written(value: str | Number) -> str:
    """A number as it is usually written: 9, not 9.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def band_codes(found: Coding) -> list[str]:
    """The codes of the bands: ``0-14``, ``15-29``, ``65+``, and ``<0`` for an open first one.

    Limits that are all whole name the last whole number of a band; others name the limit itself (``18.5-25``), which
    belongs to the next band.
    """
    if found.names:
        return list(found.names)
    return [_code(low, high, found.whole) for low, high in pairwise((*found.bands, inf))]


def _code(low: float, high: float, whole: bool) -> str:
    if low == -inf:
        return f"<{_written(high)}"
    if high == inf:
        return f"{_written(low)}+"
    if not whole:
        return f"{_written(low)}-{_written(high)}"
    return _written(low) if high - low == 1 else f"{_written(low)}-{_written(high - 1)}"


def _label(low: float, high: float, whole: bool) -> str:
    if low == -inf:
        return f"below {_written(high)}"
    if high == inf:
        return f"{_written(low)} and over"
    if not whole:
        return f"{_written(low)} to less than {_written(high)}"
    return _written(low) if high - low == 1 else f"{_written(low)} to {_written(high - 1)}"


def made_codes(found: Coding) -> list[Code]:
    """The lines of the codelist where none is given: the bands, and the code of missing values last."""
    limits = pairwise((*found.bands, inf))
    labels = [_label(low, high, found.whole) for low, high in limits]
    rows = [Code(code, "", label) for code, label in zip(band_codes(found), labels, strict=True)]
    if found.missing is not None and found.missing not in {row.code for row in rows}:
        rows.append(Code(found.missing, "", NOT_STATED))
    return rows


def codelist_problems(found: Coding, tree: Codelist) -> Iterator[Finding]:
    """Whether the codelist has the codes that the coding makes, as leaves."""
    leaves = tree.leaf_codes
    if found.missing is not None and found.missing not in leaves:
        kind = "is not a leaf" if found.missing in tree.position else "is not in the codelist"
        remedy = f"add it to the codelist; {alternatives(found.missing, leaves)}"
        yield "missing", f"code {found.missing!r} {kind}", remedy
    if not found.bands:
        return
    codes = band_codes(found)
    lacking = [code for code in codes if code not in leaves]
    if lacking:
        value = f"the codelist lacks the bands {', '.join(lacking[:5])}{', ..' if len(lacking) > 5 else ''}"
        yield "bands", value, "give it these codes as leaves, or leave the codelist out"
    others = [code for code in leaves if code not in codes and code != found.missing]
    if others and not lacking:
        value = f"the codelist has the leaf {others[0]!r}, which is no band"
        yield "bands", value, "remove it, or name it as missing"
