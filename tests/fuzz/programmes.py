"""Programmes that a user may declare: keys of every section, with values of the types that the declared models name.

The models of ``discreet.programme`` describe themselves as a JSON schema, so that a key added later is tried without a
word here. Most values are of the right type and name variables, columns and codes of the town: they get past the first
checks.
"""

import random
from functools import cache
from typing import Any

from discreet.programme.reading import DeclaredProgramme
from tests.fuzz.damage import WRONG

NAMES = (
    *("GEO", "SEX", "AGE", "TENURE", "GEO.L", "GEO.H", "GEO.L x SEX", "SEX x AGE", "GEO:1", "total", "rest"),
    *("pid", "hid", "region", "town", "sex", "age", "works", "weight", "tenure", "persons", "households"),
    *(
        "1",
        "2",
        "9",
        "child",
        "adult",
        "own",
        "N",
        "N1",
        "S1",
        "_T",
        "people",
        "homes",
        "detailed",
        "interior",
    ),
    *('SEX == "1"', 'GEO in ("N1", "S")', 'not (AGE == "child")', "sex.csv", "persons.parquet", "ptable.csv"),
    *("en", "de", "2021-05-09", "1/2", "1/3", "0.5", "1", "8g", "local[2]", "label", ";", "utf-8", "x"),
)
NUMBERS = (0, 1, 2, 3, 5, 10, 15, 100, 1000, 0.0, 0.1, 0.25, 0.5, 0.9, 0.99, 1.5, 2.0)
ENGINE = "engine"  # other processes belong to tests of their own


@cache
def schema() -> dict[str, Any]:
    """The schema of a whole programme."""
    return DeclaredProgramme.model_json_schema()


def declared(tree: dict[str, Any], dice: random.Random) -> str:
    """Declare a key somewhere in a programme; its place and value as text."""
    node, shape = tree, schema()
    place: list[str] = []
    while True:
        name = dice.choice([one for one in shape["properties"] if one != ENGINE or place])
        place.append(name)
        wanted = _resolved(shape["properties"][name], dice)
        found = node.get(name)
        if isinstance(found, list) and found and isinstance(found[0], dict):  # one of several tables
            node, shape = dice.choice(found), _resolved(wanted.get("items", {}), dice)
        elif isinstance(found, dict) and found and dice.random() < 0.9:
            if "properties" not in wanted:  # names that the user chooses: variables, breakdowns
                key = dice.choice(list(found))
                place.append(key)
                inner = _resolved(wanted.get("additionalProperties", {}), dice)
                if not isinstance(found[key], dict) or "properties" not in inner:
                    found[key] = value(inner, dice)
                    return f"{'.'.join(place)} = {found[key]!r}"
                node, shape = found[key], inner
                continue
            node, shape = found, _like(wanted, shape["properties"][name], found)
        else:
            node[name] = value(wanted, dice)
            return f"{'.'.join(place)} = {node[name]!r}"
        if "properties" not in shape:
            node[dice.choice(NAMES)] = dice.choice(NAMES)
            return f"{'.'.join(place)}: a key"


def _like(wanted: dict[str, Any], shape: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Of several shapes that a table may have, such as the kinds of noise, that with most of its keys."""
    several = [
        _resolved(one, random.Random(0))
        for some in shape.get("anyOf", [])
        for one in some.get("oneOf", [some])
    ]
    fitting = [one for one in several if "properties" in one]
    return max(fitting, key=lambda one: len(found.keys() & one["properties"].keys()), default=wanted)


def _resolved(shape: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """A shape without references, one of several where there are several; rarely null."""
    while True:
        if "$ref" in shape:
            shape = schema()["$defs"][shape["$ref"].rpartition("/")[2]]
        elif several := shape.get("anyOf") or shape.get("oneOf"):
            shape = dice.choice([one for one in several if one.get("type") != "null"] or [{}])
        else:
            return shape


def value(shape: dict[str, Any], dice: random.Random) -> Any:
    """A value of a shape; sometimes one that has nothing to do with it."""
    if dice.random() < 0.08:
        return dice.choice([one for one in WRONG if one is not None])
    shape = _resolved(shape, dice)
    if "const" in shape:
        return shape["const"]
    if "enum" in shape:
        return dice.choice(shape["enum"])
    match shape.get("type"):
        case "boolean":
            return dice.random() < 0.5
        case "integer":
            return dice.choice([one for one in NUMBERS if isinstance(one, int)])
        case "number":
            return dice.choice(NUMBERS)
        case "array":
            several = [value(shape.get("items", {}), dice) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
            return [one for one in several if one is not None]
        case "object":
            return _table(shape, dice)
    return dice.choice(NAMES)


def _table(shape: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    if "properties" in shape:
        required = set(shape.get("required", ()))
        names = [name for name in shape["properties"] if name in required or dice.random() < 0.3]
        return {name: value(shape["properties"][name], dice) for name in names}
    inner = shape.get("additionalProperties")
    inner = inner if isinstance(inner, dict) else {}
    return {dice.choice(NAMES): value(inner, dice) for _ in range(dice.choice((1, 1, 2)))}
