"""Pages that scripts write from the program are current, and their lists are complete."""

import re
import runpy
import tomllib
from pathlib import Path

import discreet
from discreet import errors
from discreet.cli.app import EXTRAS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_page_of_dependencies_is_what_its_script_writes() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "dependencies.py"))["reference"]()
    assert (REFERENCE / "dependencies.md").read_text(encoding="utf-8") == written, "run make docs-reference"


def test_every_public_name_is_listed() -> None:
    names = (REFERENCE / "api.md").read_text(encoding="utf-8").partition("## Names")[2]
    assert re.findall(r"^\| \[`(\w+)`\]", names, re.MULTILINE) == discreet.__all__


def test_every_exception_is_documented() -> None:
    kinds = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    }
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == kinds - {"DiscreetError"}


def test_every_locked_package_of_the_pages_is_pinned_without_an_address() -> None:
    lines = (ROOT / "requirements-docs.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*", line)] == []
    names = {line.partition("==")[0].lower() for line in lines}
    assert {re.split(r"[<>=]", one)[0] for one in PROJECT["optional-dependencies"]["docs"]} <= names


def test_an_absent_extra_is_known_by_every_module_of_its_packages() -> None:
    modules = {extra: {name for name, of in EXTRAS.items() if of == extra} for extra in set(EXTRAS.values())}
    assert modules["serve"] == {"fastapi", "starlette", "uvicorn", "httptools", "uvloop", "prometheus_client"}
    assert modules["databases"] == {"adbc_driver_postgresql", "adbc_driver_sqlite", "psycopg"}
    assert set(modules) | {"docs"} == set(PROJECT["optional-dependencies"])
