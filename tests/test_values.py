"""Values are frozen, and those that hold arrays are compared by identity."""

import dataclasses
import importlib
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(SRC).with_suffix("").parts)
    for package in ("maths", "programme", "perturb")
    for path in sorted((SRC / "discreet" / package).rglob("*.py"))
    if path.name != "__init__.py"
]
WORK = {"_Gaps", "Paired", "Findings"}  # filled while they are worked on


def classes(module: str) -> list[type]:
    found = [held for held in vars(importlib.import_module(module)).values() if isinstance(held, type)]
    return [one for one in found if dataclasses.is_dataclass(one) and one.__module__ == module]


@pytest.mark.parametrize("module", MODULES)
def test_values_cannot_be_changed(module: str) -> None:
    """A law or a table is used by many at once: whoever changed it would change the noise of others."""
    for one in classes(module):
        if one.__name__ not in WORK:
            assert one.__dataclass_params__.frozen, one  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", MODULES)
def test_values_with_arrays_are_compared_by_identity(module: str) -> None:
    """Arrays have no truth value: == of two such values would raise, and none could be the key of a dict."""
    for one in classes(module):
        arrays = [f.name for f in dataclasses.fields(one) if _holds_an_array(str(f.type), module)]
        if arrays:
            assert not one.__dataclass_params__.eq, one  # type: ignore[attr-defined]


def _holds_an_array(kind: str, module: str) -> bool:
    known = vars(importlib.import_module(module))
    names = {
        name for name, held in known.items() if "numpy.ndarray" in str(held) and not isinstance(held, type)
    }
    return any(word in names or word == "NDArray" for word in kind.replace("[", " ").split())


def test_a_held_array_is_found() -> None:
    assert _holds_an_array("NDArray[np.int64]", "discreet.maths.noise.law")
    assert not _holds_an_array("int", "discreet.maths.noise.law")
    assert len(classes("discreet.maths.noise.law")) > 0
