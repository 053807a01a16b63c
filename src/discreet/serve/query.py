"""A question as a user writes it: names and codes, not yet checked; its JSON form and its stable id.

``question`` checks it against a catalogue.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
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
    """One axis: a breakdown, or a variable with custom groups; the requested codes, which may include the total ``_T``.

    An empty ``codes`` means all codes. With ``groups`` the breakdown is the name of the variable, and the codes of the
    axis are ``_T`` and the names of the groups.
    """

    breakdown: str
    codes: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def variable(self) -> str:
        """The variable of the axis."""
        return self.breakdown.partition(".")[0]


@dataclass(frozen=True)
class Query:
    """A table: who is counted, crossed by what.

    ``where`` is a filter expression (see programme.filter), ``count`` a 0/1 column that is counted instead of the
    records. Two queries are the same question when their ids are equal after ``TableBuilder.canonical``; the order of
    the axes is layout: it is not part of the id, but of equality, because answers keep the order.
    """

    unit: str
    axes: tuple[Axis, ...]
    where: str = ""
    count: str = ""

    @cached_property
    def id(self) -> str:
        """A stable id of the question, independent of its layout: 32 hexadecimal digits."""
        content = to_json(self)
        for axis in content["axes"]:
            if "codes" in axis:
                axis["codes"].sort()
        content["axes"].sort(key=itemgetter("breakdown"))
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=16, person=b"discreet-query").hexdigest()


def to_json(query: Query) -> dict[str, Any]:
    """The question as JSON; empty parts are left out."""
    axes = []
    for axis in query.axes:
        content: dict[str, Any] = {"breakdown": axis.breakdown}
        if axis.codes:
            content["codes"] = list(axis.codes)
        if axis.groups:
            content["groups"] = {group.name: list(group.codes) for group in axis.groups}
        axes.append(content)
    given = {"unit": query.unit, "axes": axes, "where": query.where, "count": query.count}
    return {key: value for key, value in given.items() if value != "" or key == "unit"}


def from_json(content: object) -> Query:
    """Read what ``to_json`` writes, from any client; any other form is a mistake, never a traceback."""
    table = _table(content, "query", {"unit", "axes", "where", "count"})
    axes = table.get("axes", [])
    if not isinstance(axes, list):
        raise mistake("", "axes", phrase("not a list"), REMEDY)
    return Query(
        _text(table, "unit") or "persons",
        tuple(_axis(place, axis) for place, axis in enumerate(axes)),
        _text(table, "where"),
        _text(table, "count"),
    )


def _axis(place: int, content: object) -> Axis:
    if isinstance(content, str):
        return Axis(content)
    key = f"axes[{place}]"
    table = _table(content, key, {"breakdown", "codes", "groups"})
    groups = table.get("groups", {})
    if not isinstance(groups, dict):
        remedy = phrase("write {example}", example='{"name": ["code", ..]}')
        raise mistake("", f"{key}.groups", phrase("not a table"), remedy)
    return Axis(
        _text(table, "breakdown"),
        _codes(table.get("codes", []), f"{key}.codes"),
        tuple(Group(str(name), _codes(codes, f"{key}.groups")) for name, codes in groups.items()),
    )


def _table(content: object, key: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise mistake("", key, phrase("not a table"), REMEDY)
    for name in content:
        if name not in known:
            value = phrase("unknown key {key}", key=repr(str(name)[:60]))
            raise mistake("", key, value, phrase("use one of {names}", names=tuple(sorted(known))))
    return content


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key) or ""
    if not isinstance(value, str):
        raise mistake("", key, phrase("not a text"), REMEDY)
    return value


def _codes(content: object, key: str) -> tuple[str, ...]:
    if not isinstance(content, list) or not all(isinstance(code, str) for code in content):
        remedy = phrase("write {example}", example='["1", "2"]')
        raise mistake("", key, phrase("not a list of codes"), remedy)
    return tuple(content)
