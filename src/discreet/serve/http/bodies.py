"""What clients may send, as the OpenAPI document tells it; what the names in it mean is resolved by the builder."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from discreet.serve.http.downloads import Format
from discreet.serve.http.layout import Layout, Percent, Texts
from discreet.serve.query import Query, from_json
from discreet.words.phrase import phrase

MOST_CODES = 200_000
LONGEST_WHERE = 20_000


def _sound(text: str) -> str:
    """Characters that databases and files can hold."""
    if "\x00" in text:
        raise ValueError(phrase("holds a character of code 0"))
    return text


def _writable(said: dict[str, Any]) -> dict[str, Any]:
    """What JSON in UTF-8 can hold: no halves of characters, no numbers that are none."""
    try:
        json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ValueError(phrase("cannot be written as JSON")) from None
    return said


Text = Annotated[str, AfterValidator(_sound)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_sound)]
Codes = Annotated[list[Name], Field(max_length=MOST_CODES)]


class AxisBody(BaseModel):
    """One axis: a breakdown and the codes wanted of it, or a variable and groups of its codes."""

    model_config = ConfigDict(extra="forbid")

    breakdown: Name = Field(examples=["AGE.M"])
    codes: Codes = Field(default=[], description="Codes that are wanted, _T for the total; empty: all.")
    groups: dict[Name, Codes] = Field(default={}, description="Names of groups and the codes in them.")


class QueryBody(BaseModel):
    """A question: who is counted, crossed by what."""

    model_config = ConfigDict(extra="forbid")

    unit: Name = Field(default="persons", examples=["persons"])
    axes: list[AxisBody | Name] = Field(default=[], max_length=50, examples=[[{"breakdown": "SEX"}]])
    where: Annotated[str, Field(max_length=LONGEST_WHERE), AfterValidator(_sound)] = ""
    count: Name = ""

    def query(self) -> Query:
        """The question."""
        return from_json(self.model_dump(exclude_defaults=True))


class RangesBody(BaseModel):
    """Cells of an answer, by their places in it, whose noise is asked after."""

    model_config = ConfigDict(extra="forbid")

    query: QueryBody
    cells: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=1_000)
    level: float = Field(default=0.95, ge=0.5, le=0.9999)


class SaveBody(BaseModel):
    """A question to keep for ever, and whatever a client wants to find with it."""

    model_config = ConfigDict(extra="forbid")

    query: QueryBody
    extra: Annotated[dict[str, Any], AfterValidator(_writable)] = Field(
        default={}, description="Up to 20,000 characters of JSON: layout, language."
    )


class LayoutBody(BaseModel):
    """How a CSV or XLSX file is laid out."""

    model_config = ConfigDict(extra="forbid")

    columns: Annotated[list[Name], Field(max_length=50)] = []
    texts: Texts = Texts.BOTH
    percent: Percent | None = None
    counts: bool = False

    def layout(self) -> Layout:
        """The layout."""
        return Layout(tuple(self.columns), self.texts, percent=self.percent, counts=self.counts)


class JobBody(BaseModel):
    """A large table to be made in the background."""

    model_config = ConfigDict(extra="forbid")

    query: QueryBody
    format: Format = Format.CSV
    layout: LayoutBody = LayoutBody()
