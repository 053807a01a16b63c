"""The reference of the library is current, and every public name is documented and shown in an example."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
EXAMPLES = "\n".join(
    [
        *(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "notebooks").glob("*.py")),
        *re.findall(r"^ *(?:>>>|\.\.\.) .*$", "\n".join(
            path.read_text(encoding="utf-8") for path in (ROOT / "src" / "discreet" / "api").glob("*.py")
        ), flags=re.MULTILINE),
    ]
)  # fmt: skip
RETURNED = {  # names of types that users get rather than write
    "Accounting", "AttackReport", "AuditReport", "Bands", "Checked", "Ledger", "PTable", "Problem", "Programme",
    "Release", "Result", "SwapResult", "SyntheticCensus", "Table", "TableAxis", "Noise", "Mistakes",
    "NoiseLaw",
}  # fmt: skip


def test_the_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("api_reference", ROOT / "docs" / "api_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.reference() == PAGE, "run: make docs-reference"


@pytest.mark.parametrize("name", discreet.__all__)
def test_a_public_name_is_documented_and_shown(name: str) -> None:
    value = getattr(discreet, name)
    written = inspect.getdoc(value) or ""
    assert written, "write a docstring"
    assert not written.startswith(f"{name}("), "write a docstring"
    assert f"\n## {name}\n" in PAGE
    if name not in RETURNED:
        assert re.search(rf"\bds\.{name}\b", EXAMPLES), "show it in an example"


@pytest.mark.parametrize("name", sorted(RETURNED - {"Ledger", "PTable", "Problem", "Mistakes", "Bands"}))
def test_a_type_that_is_returned_has_an_example_of_its_own(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(discreet, name)) or "")


def test_every_parameter_has_a_type() -> None:
    for name in discreet.__all__:
        value = getattr(discreet, name)
        if inspect.isclass(value) or not callable(value):
            continue
        for parameter in inspect.signature(value).parameters.values():
            assert parameter.annotation is not parameter.empty, f"{name}: {parameter.name}"
