"""The reference of the library is current, and every public name is documented and shown in an example."""

import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import discreet

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SOURCES = [
    *(ROOT / "src" / "discreet" / "api").glob("*.py"),
    *(ROOT / "src" / "discreet" / "inference").glob("*.py"),
]
EXAMPLES = "\n".join(
    [
        *(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "notebooks").glob("*.py")),
        *re.findall(r"^ *(?:>>>|\.\.\.) .*$", "\n".join(
            path.read_text(encoding="utf-8") for path in SOURCES
        ), flags=re.MULTILINE),
    ]
)  # fmt: skip
RETURNED = {  # names of types that users get rather than write
    "Accounting", "AttackReport", "AuditReport", "Bands", "Checked", "Ledger", "PTable", "Problem", "Programme",
    "PTableFile", "CheckedPTable", "ComparedUtility",
    "Release", "Result", "SwapResult", "SyntheticCensus", "Table", "TableAxis", "Noise", "Mistakes",
    "NoiseLaw",
}  # fmt: skip


def names() -> dict[str, Any]:
    """Every public name, those of modules with the name of the module before them."""
    found = {name: getattr(discreet, name) for name in discreet.__all__}
    for module in ("risk", "inference"):
        found |= {f"{module}.{one}": getattr(found[module], one) for one in found[module].__all__}
    return found


NAMES = names()


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("api_reference", ROOT / "docs" / "api_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_current() -> None:
    found = {
        f"api/{path.name}": path.read_text(encoding="utf-8") for path in (REFERENCE / "api").glob("*.md")
    }
    found["api.md"] = (REFERENCE / "api.md").read_text(encoding="utf-8")
    assert found == generator().pages(), "run: make docs-reference"


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_a_page_and_is_shown(name: str) -> None:
    value, short = NAMES[name], name.rpartition(".")[2]
    written = inspect.getdoc(value) or ""
    assert written, "write a docstring"
    assert not written.startswith(f"{short}("), "write a docstring"
    page = (REFERENCE / "api" / generator().page_name(name, value)).read_text(encoding="utf-8")
    assert page.startswith(f"# {name}\n")
    assert written.split("\n\n")[0].replace("``", "`") in page
    is_returned = short in RETURNED or (name.startswith("inference.") and inspect.isclass(value))
    if not is_returned:
        assert re.search(rf"\bds\.{name}\b", EXAMPLES), "show it in an example"
    if inspect.isfunction(value):
        assert ">>> " in written, "write an example"


@pytest.mark.parametrize("name", sorted(RETURNED))
def test_a_type_that_is_returned_has_an_example_of_its_own(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(discreet, name)) or "")


def test_every_parameter_has_a_type() -> None:
    for name in discreet.__all__:
        value = getattr(discreet, name)
        if inspect.isclass(value) or not callable(value):
            continue
        for parameter in inspect.signature(value).parameters.values():
            assert parameter.annotation is not parameter.empty, f"{name}: {parameter.name}"
