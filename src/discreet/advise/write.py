"""Writes proposed noise parameters into a programme file; comments and every other section stay as they are.

The result is read again before it replaces the file: it must declare what was proposed, nothing else may differ, and
it must load; otherwise the file is not changed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from discreet.errors import Mistakes, mistake
from discreet.io.whole_file import OWNER_ONLY_FILE, whole_file
from discreet.maths.noise.additive import LawKind
from discreet.programme.noise import DeclaredCellKey, DeclaredPrivate
from discreet.programme.programme import load_declaration

Values = Mapping[str, str | float | int]

BY_HAND = "write them by hand into a section [noise]"


def write_noise(path: Path, noise: Values) -> str:
    """Write the parameters into the [noise] section of a programme file, atomically; return what changed."""
    before = _text(path)
    after = changed(before, noise, str(path))
    if after == before:
        return "the file already declares these parameters"
    _replace(path, after)
    return "; ".join(f"{key} = {_toml(value)}" for key, value in noise.items())


def changed(text: str, noise: Values, file: str = "") -> str:
    """The text of a programme with other noise parameters; comments and layout are preserved."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        raise mistake(file, "noise", "is not in a TOML file that can be changed", BY_HAND) from None
    section = document.get("noise")
    if not isinstance(section, MutableMapping):
        raise mistake(file, "noise", "there is no section [noise]", BY_HAND)
    preserved = _preserved(str(noise["kind"]))
    for key in [key for key in section if key not in preserved and key not in noise]:
        del section[key]
    for key in [key for key in noise if key in section and section[key] != noise[key]]:
        section[key] = noise[key]
    _add(section, {key: value for key, value in noise.items() if key not in section}, text)
    result = tomlkit.dumps(document)
    _require_only(text, result, noise, preserved, file)
    return result


def _preserved(kind: str) -> set[str]:
    """The existing keys that stay in addition to the new ones; a p-table file would contradict them."""
    model = DeclaredCellKey if kind == LawKind.CELL_KEY else DeclaredPrivate
    dropped = {"ptable", "bound"} | ({"epsilon", "rho"} if kind != LawKind.CELL_KEY else set())
    return set(model.model_fields) - dropped


def _add(section: MutableMapping[str, Any], values: Values, text: str) -> None:
    """Add keys after the last entry: the comments after it belong to the next section."""
    if not isinstance(section, Table):
        section.update(values)
        return
    body, below = section.value.body, []
    while body and body[-1][0] is None:
        below.append(body.pop())
    for key, value in values.items():
        entry = tomlkit.item(value)
        entry.trivia.trail = "\r\n" if "\r\n" in text else "\n"
        section.append(key, entry)
    body.extend(reversed(below))


def _require_only(before: str, after: str, noise: Values, preserved: set[str], file: str) -> None:
    """Refuse a text that differs from the old one in anything but these parameters."""
    old, new = tomllib.loads(before), tomllib.loads(after)
    wanted: dict[str, Any] = {key: value for key, value in old["noise"].items() if key in preserved}
    if new.pop("noise", None) != {**wanted, **noise} or new != {k: v for k, v in old.items() if k != "noise"}:
        raise mistake(file, "noise", "cannot be changed", BY_HAND)


def _replace(path: Path, text: str) -> None:
    """Replace the file once the new text loads from the same folder, to which its paths are relative."""
    place = path.resolve()
    with whole_file(place, OWNER_ONLY_FILE) as draft:
        draft.write_bytes(text.encode())
        draft.chmod(place.stat().st_mode & 0o7777)
        _require_loads(draft, path)


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
    return tomlkit.item(value).as_string()
