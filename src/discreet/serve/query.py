"""A question as somebody asks it: names and codes, not yet checked; its form as JSON and its stable id.

It owns the words of a question; whether they mean anything is resolved against a catalogue (see question).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from discreet.errors import mistake
from discreet.text.phrase import phrase

LONGEST_NAME = 200  # characters of a group's name
REMEDY = phrase(
    "write {example}",
    example='{"unit": "persons", "axes": [{"breakdown": "SEX"}], "where": "", "count": ""}',
)


@dataclass(frozen=True)
class Group:
    """Some codes of a variable under a name of the user's."""

    name: str
    codes: tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """One axis: a breakdown, or a variable with custom groups; the codes wanted of it, the total ``_T`` among them.

    An empty ``codes`` asks for all codes. With ``groups`` the breakdown names the variable alone, and the codes of the
    axis are ``_T`` and the names of the groups.
    """

    breakdown: str
    codes: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def variable(self) -> str:
        """The variable whose codes stand along the axis."""
        return self.breakdown.partition(".")[0]


@dataclass(frozen=True)
class Query:
    """A table: who is counted, crossed by what.

    ``where`` is a filter expression (see schema.expression), ``count`` a 0/1 column that is counted instead of the
    records. Two queries are the same question when their ids are equal after ``answering.TableBuilder.canonical``; the
    order of the axes is a matter of layout and is no part of the id (but of equality: answers keep the order).
    """

    unit: str
    axes: tuple[Axis, ...]
    where: str = ""
    count: str = ""

    @property
    def id(self) -> str:
        """A stable name of the question: 32 hexadecimal digits; tells no layout."""
        axes = [replace(axis, codes=tuple(sorted(axis.codes))) for axis in self.axes]
        axes.sort(key=lambda axis: axis.breakdown)
        text = json.dumps(to_json(replace(self, axes=tuple(axes))), sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16, person=b"discreet-query").hexdigest()


def to_json(query: Query) -> dict[str, Any]:
    """The question as JSON; empty parts are left out."""
    axes = []
    for axis in query.axes:
        said: dict[str, Any] = {"breakdown": axis.breakdown}
        if axis.codes:
            said["codes"] = list(axis.codes)
        if axis.groups:
            said["groups"] = {group.name: list(group.codes) for group in axis.groups}
        axes.append(said)
    given = {"unit": query.unit, "axes": axes, "where": query.where, "count": query.count}
    return {key: value for key, value in given.items() if value != "" or key == "unit"}


def from_json(said: object) -> Query:
    """Read what ``to_json`` writes, from anywhere; anything of another form is a mistake, never a traceback."""
    table = _table(said, "query", {"unit", "axes", "where", "count"})
    axes = table.get("axes", [])
    if not isinstance(axes, list):
        raise mistake("", "axes", phrase("not a list"), REMEDY)
    return Query(
        _text(table, "unit") or "persons",
        tuple(_axis(place, axis) for place, axis in enumerate(axes)),
        _text(table, "where"),
        _text(table, "count"),
    )


def _axis(place: int, said: object) -> Axis:
    if isinstance(said, str):
        return Axis(said)
    key = f"axes[{place}]"
    table = _table(said, key, {"breakdown", "codes", "groups"})
    groups = table.get("groups", {})
    if not isinstance(groups, dict):
        remedy = phrase("write {example}", example='{"name": ["code", ..]}')
        raise mistake("", f"{key}.groups", phrase("not a table"), remedy)
    return Axis(
        _text(table, "breakdown"),
        _codes(table.get("codes", []), f"{key}.codes"),
        tuple(Group(str(name), _codes(codes, f"{key}.groups")) for name, codes in groups.items()),
    )


def _table(said: object, key: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise mistake("", key, phrase("not a table"), REMEDY)
    for name in said:
        if name not in known:
            value = phrase("unknown key {key}", key=repr(str(name)[:60]))
            raise mistake("", key, value, phrase("use one of {names}", names=tuple(sorted(known))))
    return said


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key) or ""
    if not isinstance(value, str):
        raise mistake("", key, phrase("not a text"), REMEDY)
    return value


def _codes(said: object, key: str) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(code, str) for code in said):
        remedy = phrase("write {example}", example='["1", "2"]')
        raise mistake("", key, phrase("not a list of codes"), remedy)
    return tuple(said)
