"""Writes proposed noise parameters into a programme file; every other line stays as it is.

It owns the change of the text. The result is read again before it takes the file's place: it must declare what was
proposed, nothing else may differ, and it must load; otherwise the file is left alone.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.errors import Mistakes, mistake
from discreet.maths.noise.additive import LawKind
from discreet.programme.noise import DeclaredCellKey, DeclaredPrivate
from discreet.programme.programme import load_declaration

Values = Mapping[str, str | float | int]

_HEADER = re.compile(r"\s*\[\s*noise\s*\]\s*(#.*)?")
_NEXT = re.compile(r"\s*\[")
_ENTRY = re.compile(
    r"(?P<head>\s*(?P<key>[A-Za-z0-9_]+)\s*=\s*)(?P<value>\"[^\"]*\"|'[^']*'|[^#\s][^#]*?)(?P<rest>\s*(#.*)?)"
)
BY_HAND = "write them by hand into a section [noise] with a key on every line"


def write_noise(path: Path, noise: Values) -> str:
    """Put the parameters into the [noise] section of a programme file, in one step; return what changed."""
    before = _text(path)
    after = changed(before, noise, str(path))
    if after == before:
        return "the file declares these parameters already"
    _replace(path, after)
    return "; ".join(f"{key} = {_toml(value)}" for key, value in noise.items())


def changed(text: str, noise: Values, file: str = "") -> str:
    """The text of a programme with other parameters of its noise; refused where that cannot be done line by line."""
    lines = text.splitlines(keepends=True)
    starts = [at for at, line in enumerate(lines) if _HEADER.fullmatch(line.rstrip("\r\n"))]
    if len(starts) != 1:
        raise mistake(file, "noise", "no section [noise] of its own lines", BY_HAND)
    first = starts[0] + 1
    last = next((at for at in range(first, len(lines)) if _NEXT.match(lines[at])), len(lines))
    kept = _kept(str(noise["kind"]))
    section = list(_section(lines[first:last], noise, kept))
    result = "".join([*lines[:first], *section, *lines[last:]])
    _require_only(text, result, noise, kept, file)
    return result


def _kept(kind: str) -> set[str]:
    """The keys that may stand beside the new ones; a p-table file would contradict them."""
    model = DeclaredCellKey if kind == LawKind.CELL_KEY else DeclaredPrivate
    dropped = {"ptable", "bound"} | ({"epsilon", "rho"} if kind != LawKind.CELL_KEY else set())
    return set(model.model_fields) - dropped


def _section(lines: list[str], noise: Values, kept: set[str]) -> Iterator[str]:
    """The lines of the section: new values in their old places, the rest of them after the last entry."""
    end = max((at for at, line in enumerate(lines) if _ENTRY.fullmatch(line.rstrip("\r\n"))), default=-1)
    missing = dict(noise)
    newline = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    if end < 0:
        yield from (f"{key} = {_toml(value)}{newline}" for key, value in missing.items())
    for at, line in enumerate(lines):
        entry = _ENTRY.fullmatch(line.rstrip("\r\n"))
        if entry is None:
            yield line
        elif entry["key"] in missing:
            value = _toml(missing.pop(entry["key"]))
            yield f"{entry['head']}{value}{entry['rest']}{newline}"
        elif entry["key"] in kept:
            yield line if line.endswith("\n") else line + newline
        if at == end:
            yield from (f"{key} = {_toml(value)}{newline}" for key, value in missing.items())


def _require_only(before: str, after: str, noise: Values, kept: set[str], file: str) -> None:
    """Refuse a text that says anything else than the one before with these parameters."""
    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        raise mistake(file, "noise", "cannot be changed line by line", BY_HAND) from None
    wanted: dict[str, Any] = {key: value for key, value in old["noise"].items() if key in kept}
    if new.pop("noise", None) != {**wanted, **noise} or new != {k: v for k, v in old.items() if k != "noise"}:
        raise mistake(file, "noise", "cannot be changed line by line", BY_HAND)


def _replace(path: Path, text: str) -> None:
    """Put the new text in the file's place once it loads from there: paths in it are relative to its folder."""
    place = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".toml")
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        made.chmod(place.stat().st_mode & 0o7777)
        _require_loads(made, path)
        made.replace(place)
    finally:
        made.unlink(missing_ok=True)


def _require_loads(made: Path, path: Path) -> None:
    try:
        load_declaration(made)
    except Mistakes as mistakes:
        first = mistakes.problems[0]
        value = f"the proposal does not fit the rest of the file ({first.key}: {first.value})"
        raise mistake(path, "noise", value, f"{first.remedy}; nothing was written") from None


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _toml(value: str | float | int) -> str:
    return json.dumps(value)
