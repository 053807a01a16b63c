"""Compact Thrift as a tree of fields: what the ends and the page headers of Parquet files are written in.

The format: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md. A tree is changed here
without knowing what its fields mean, so that every number, size, place, encoding, statistic and element of a schema is
changed some time.
"""

import random
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
WHOLE = (I16, I32, I64)
NUMBERS = (
    *range(-2, 12),
    *(15, 16, 17, 31, 32, 33, 63, 64, 100, 255, 256, 1000, 65_535, 65_536, 2**20, 2**24, 2**26 + 1),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, -(2**15), -(2**31), -(2**63)),
)
TEXTS = (b"", b"\x00", b"\xff" * 8, b"x" * 3000, "ü".encode(), b"\xc3", b"pid", b"list.list.element")


@dataclass
class Field:
    """A field of a struct; the value of a struct is a list of fields, that of a list its kind and its elements."""

    number: int
    kind: int
    value: Any


Struct = list[Field]


def read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    """A struct, and where it ends."""
    fields: Struct = []
    before = 0
    while kind := data[at] & 15:
        step, at = data[at] >> 4, at + 1
        if step:
            number = before + step
        else:
            coded, at = _read_number(data, at)
            number = _unzigzag(coded)
        value, at = _read(data, at, kind)
        fields.append(Field(number, kind, value))
        before = number
    return fields, at + 1


def _read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return None, at
    if kind == BYTE:
        return data[at], at + 1
    if kind in WHOLE:
        coded, at = _read_number(data, at)
        return _unzigzag(coded), at
    if kind == DOUBLE:
        return data[at : at + 8], at + 8
    if kind == BINARY:
        size, at = _read_number(data, at)
        return data[at : at + size], at + size
    if kind in (LIST, SET):
        return _read_list(data, at)
    if kind == STRUCT:
        return read_struct(data, at)
    raise ValueError(f"type {kind}")


def _read_list(data: bytes, at: int) -> tuple[tuple[int, list[Any]], int]:
    size, inner = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _read_number(data, at)
    found = []
    for _ in range(size):
        one, at = _read(data, at, BYTE if inner in (TRUE, FALSE) else inner)  # a truth value is a byte here
        found.append(one)
    return (inner, found), at


def write_struct(fields: Struct) -> bytes:
    """The bytes of a struct."""
    out, before = bytearray(), 0
    for field in fields:
        step = field.number - before
        if 0 < step < 16:
            out.append(step << 4 | field.kind)
        else:
            out.append(field.kind)
            out += _number(_zigzag(field.number))
        out += _written(field.kind, field.value)
        before = field.number
    return bytes(out) + b"\x00"


def _written(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value & 255])
    if kind in WHOLE:
        return _number(_zigzag(value))
    if kind == BINARY:
        return _number(len(value)) + bytes(value)
    if kind in (LIST, SET):
        inner, found = value
        head = (
            bytes([len(found) << 4 | inner])
            if len(found) < 15
            else bytes([240 | inner]) + _number(len(found))
        )
        parts = (bytes([one & 255]) if inner in (TRUE, FALSE) else _written(inner, one) for one in found)
        return head + b"".join(parts)
    return write_struct(value) if kind == STRUCT else bytes(value)


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    found, shift = 0, 0
    while True:
        byte, at = data[at], at + 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _unzigzag(coded: int) -> int:
    return (coded >> 1) ^ -(coded & 1)


def _zigzag(value: int) -> int:
    return (value << 1 if value >= 0 else (-value << 1) - 1) & (2**64 - 1)


def field_of(struct: Struct, number: int) -> Field | None:
    """A field of a struct; None where it has none."""
    return next((field for field in struct if field.number == number), None)


def change(tree: Struct, dice: random.Random) -> str:
    """Change one thing somewhere in a tree; what, as text. Deep places are as likely as those near the top."""
    places = list(_places(tree, ""))
    if not places:
        return "nothing"
    structs, path, field = dice.choice(places)
    kind = dice.random()
    if kind < 0.08:
        structs.remove(field)
        return f"{path} left out"
    if kind < 0.14:
        structs.append(Field(field.number, field.kind, field.value))
        return f"{path} twice"
    if kind < 0.2:
        field.number = dice.choice((*range(1, 14), -1, 40, 2**15))
        return f"{path} is field {field.number}"
    if kind < 0.24:
        field.kind, field.value = dice.choice(
            (
                (TRUE, None),
                (I32, 1),
                (I64, 2**40),
                (BINARY, b"x"),
                (LIST, (I32, [1])),
                (STRUCT, []),
                (DOUBLE, b"\xff" * 8),
            )
        )
        return f"{path} has type {field.kind}"
    if field.kind in (TRUE, FALSE):
        field.kind = TRUE + FALSE - field.kind
    elif field.kind in (LIST, SET):
        _change_list(field, dice)
    elif field.kind == STRUCT:  # another one of the tree
        others = [other for _, _, other in places if other.kind == STRUCT]
        field.value = deepcopy(dice.choice(others).value) if dice.random() < 0.5 else []
    else:
        field.value = _other(field.kind, field.value, dice, places)
    return f"{path} = {field.value!r:.40}"


def _change_list(field: Field, dice: random.Random) -> None:
    inner, found = field.value
    at = dice.randrange(len(found) + 1)
    match dice.randrange(6):
        case 0:
            found = []
        case 1:
            found = [*found[:at], *found[at + 1 :]]
        case 2:
            found = [*found[:at], *found[at : at + 1] * dice.choice((2, 2, 3, 40)), *found[at + 1 :]]
        case 3:
            found = found[::-1]
        case 4:
            inner = dice.choice((I32, I64, BINARY, STRUCT, TRUE))
            found = [[] if inner == STRUCT else b"x" if inner == BINARY else 1] * len(found)
        case _ if at < len(found) and inner not in (LIST, SET, STRUCT, DOUBLE):
            found = [*found[:at], _other(inner, found[at], dice, []), *found[at + 1 :]]
        case _:
            found = found[:at]
    field.value = (inner, found)


def _other(kind: int, value: Any, dice: random.Random, places: list[Any]) -> Any:
    """Another value of a kind: a strange one, one near by, or that of another place."""
    same = [other.value for _, _, other in places if other.kind == kind]
    if kind == BINARY:
        turned = bytes(one ^ 255 for one in value[:2]) + value[2:]
        return dice.choice((dice.choice(TEXTS), turned, value[:-1], *([dice.choice(same)] if same else [])))
    if kind == DOUBLE:
        return dice.choice((b"\x00" * 8, b"\xff" * 8))
    if kind == BYTE:
        return dice.randrange(256)
    near = (value + 1, value - 1, -value, value * 2, value // 2, *([dice.choice(same)] if same else []))
    return dice.choice((dice.choice(NUMBERS), dice.choice(near)))


def _places(struct: Struct, path: str) -> Any:
    """Every field of a tree: the struct that has it, its path, and the field."""
    for field in list(struct):
        here = f"{path}.{field.number}" if path else str(field.number)
        yield struct, here, field
        if field.kind == STRUCT:
            yield from _places(field.value, here)
        elif field.kind in (LIST, SET) and field.value[0] == STRUCT:
            for at, one in enumerate(field.value[1]):
                yield from _places(one, f"{here}[{at}]")
