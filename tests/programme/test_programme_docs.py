"""The documentation of the programme file names every key there is, no other, and its examples fit."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from discreet.programme.population import UNITS
from discreet.programme.reading import DeclaredProgramme, all_keys, keys_at

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "programme-file.md").read_text(encoding="utf-8")


def general(key: str) -> str:
    """The sources of all units have the same keys, which are documented once."""
    return re.sub(rf"^population\.({'|'.join(UNITS)})\.", "population.*.", key)


def documented() -> set[str]:
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `")]
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


def test_every_key_is_documented_and_every_documented_key_exists() -> None:
    sections = set(DeclaredProgramme.model_fields)
    assert documented() == {general(key) for key in all_keys()} - sections
    for section in sections:
        assert re.search(rf"^## `\[\[?{section}(\.NAME)?\]\]?`", TEXT, re.MULTILINE), section


def test_every_example_fits() -> None:
    examples = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert len(examples) >= 5
    for example in examples:
        DeclaredProgramme.model_validate(tomllib.loads(example))


def test_defaults_in_the_documentation_are_the_defaults() -> None:
    for section in ("release", "limits"):
        defaults = getattr(DeclaredProgramme(), section).model_dump()
        for key in keys_at((section,)):
            row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{section}.{key}`"))
            if defaults[key] is not None:
                value = defaults[key]
                written = str(value).lower() if isinstance(value, bool) else str(value).replace("'", '"')
                assert written in row.split("|")[-2], key
