"""The declared programme file and its reading: every mistake is collected."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from discreet.errors import mistake
from discreet.programme.cubes import DeclaredCube, DeclaredStructuralZero
from discreet.programme.engine import DeclaredEngine
from discreet.programme.filter import alternatives
from discreet.programme.gates import DeclaredGates
from discreet.programme.noise import KINDS, NoiseEntry
from discreet.programme.population import DeclaredPopulation
from discreet.programme.release import DeclaredLimits, DeclaredRelease
from discreet.programme.section import FORM, Declared, Findings, Word
from discreet.programme.serve import DeclaredServe
from discreet.programme.swap import DeclaredSwap
from discreet.programme.variables import DeclaredStandard, DeclaredVariable


class DeclaredProgramme(Declared):
    """The whole file.

    A list may contain None only while mistakes are collected: an invalid entry is removed so that the
    rest can still be checked, and the entries after it keep their place.
    """

    population: DeclaredPopulation | None = None
    variables: dict[Word, DeclaredVariable] = {}
    standard: DeclaredStandard | None = None
    cubes: list[DeclaredCube | None] = []
    structural_zeros: list[DeclaredStructuralZero | None] = []
    swap: DeclaredSwap | None = None
    noise: NoiseEntry | None = None
    release: DeclaredRelease = Field(default_factory=DeclaredRelease)
    limits: DeclaredLimits = Field(default_factory=DeclaredLimits)
    gates: DeclaredGates = Field(default_factory=DeclaredGates)
    serve: DeclaredServe = Field(default_factory=DeclaredServe)
    engine: DeclaredEngine | None = None


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The declared models that an annotation mentions, however nested."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in models_in(part)]


def keys_at(path: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed in the table at a path of the file."""
    models: list[type[BaseModel]] = [DeclaredProgramme]
    for step in path:
        fields = [model.model_fields[step] for model in models if step in model.model_fields]
        if fields:  # a step that is no key is the name of a variable or a place in a list
            models = [model for field in fields for model in models_in(field.annotation)]
    return sorted({key for model in models for key in model.model_fields})


def all_keys() -> set[str]:
    """Every key that a programme file may have, as ``section.key``."""
    return set(_keys_below("", DeclaredProgramme))


def _keys_below(path: str, model: type[BaseModel]) -> Iterator[str]:
    for key, field in model.model_fields.items():
        yield path + key
        for below in models_in(field.annotation):
            yield from _keys_below(f"{path}{key}.", below)


Path_ = tuple[int | str, ...]


def read_declared(findings: Findings) -> DeclaredProgramme:
    """Read a programme file; invalid parts are reported and left out."""
    return checked_declaration(read_toml(findings.path), findings)


def checked_declaration(raw: dict[str, Any], findings: Findings) -> DeclaredProgramme:
    """The content of a programme file; invalid parts are reported, and removed from ``raw``."""
    try:
        return DeclaredProgramme.model_validate(raw)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            findings.add(*_wording(detail))
            _leave_out(raw, _path(detail), findings)
    return DeclaredProgramme.model_validate(raw)


MOST_BITS = 10_000  # of a number in a programme: about 3,000 digits
_DEEP = re.compile(r"(?:\[\s*){50}")  # arrays in arrays; the sections of a programme have at most two


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a programme file, unchecked."""
    nested = mistake(
        path, "", "nested too deeply", "write it flat, as docs/reference/programme-file.md shows"
    )
    huge = mistake(path, "", "has a number of thousands of digits", "correct the file")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if _DEEP.search(text):  # a parser near the end of its stack may print what it cannot raise
            raise nested
        found = tomllib.loads(text)
        if _has_huge_number(found):
            raise huge
        return found
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise mistake(path, "", f"cannot be read: {reason}", "give the path of a programme file") from None
    except UnicodeDecodeError as error:
        raise mistake(path, f"byte {error.start}", "is not UTF-8", "save the programme as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).partition(" (at ")
        raise mistake(path, where.rstrip(")"), f"is not TOML: {what}", "correct the line") from None
    except ValueError:  # of decimal numbers; others are parsed
        raise huge from None
    except RecursionError:
        raise nested from None


def _has_huge_number(value: object) -> bool:
    """Whether a number has more digits than Python writes: hexadecimal ones may."""
    if isinstance(value, dict | list):
        return any(map(_has_huge_number, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value.bit_length() > MOST_BITS


def _path(detail: ErrorDetails) -> Path_:
    """Where the error is in the file, without the marks that pydantic adds for unions and keys."""
    return tuple(
        step for step in detail["loc"] if not (isinstance(step, str) and step.startswith(("|", "[key]")))
    )


def key_text(path: Sequence[int | str]) -> str:
    """A path in the file as its author would write it: cubes[3].axes."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _leave_out(raw: dict[str, Any], path: Path_, findings: Findings) -> None:
    """Remove the invalid part, so that the rest can still be checked."""
    section = str(path[0])
    content = raw.get(section)
    findings.broken_sections.add(section)
    if len(path) > 1 and isinstance(content, dict) and section == "variables":
        content.pop(path[1], None)
        findings.broken_variables.add(str(path[1]))
    elif len(path) > 1 and isinstance(content, list) and isinstance(path[1], int):
        content[path[1]] = None
    else:
        raw.pop(section, None)


def _wording(detail: ErrorDetails) -> tuple[str, str, str]:
    """Key, value and remedy of one error."""
    path, kind, context = _path(detail), detail["type"], detail.get("ctx", {})
    key = key_text(path)
    if kind == "extra_forbidden":
        return (
            key_text(path[:-1]),
            f"unknown key {path[-1]!r}",
            alternatives(str(path[-1]), keys_at(path[:-1])),
        )
    if kind == "missing":
        return key, "is missing", "add it"
    value = _shown(detail["input"])
    if kind == FORM:
        return key, detail["msg"], str(context["remedy"])
    if kind == "literal_error":
        known = ", ".join(repr(name) for name in KINDS) if key == "noise.kind" else ""
        return key, value, f"use {known or context['expected']}"
    if kind in ("model_type", "dict_type"):
        return key, value, "write a table of keys and values"
    if kind == "too_short":
        return key, "is empty", "give at least one entry, or leave the key out"
    if kind == "string_too_short":
        return key, "is empty", "give a value, or leave the key out"
    return key, value, _plain(detail["msg"])


def _plain(message: str) -> str:
    return re.sub(r"^(Input|List|String|Dictionary) should", "it should", message)


def _shown(value: object) -> str:
    """A wrong value, unless it is long or may contain a password."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, str) and (len(value) > 60 or "://" in value):
        return "this text"
    return repr(value).lower() if isinstance(value, bool) else repr(value)
