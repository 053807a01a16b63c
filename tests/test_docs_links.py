"""Every relative link of the documentation exists, and so does every module, name and source file that it mentions."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from benchmarks.__main__ import SUBJECTS

from discreet.formats.dataset import facts
from discreet.formats.parquet import METADATA_PREFIX
from tests.release.small import cubes

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "examples")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
DOTTED = re.compile(r"(?<![\w./-])discreet(?:\.[A-Za-z_]\w*)+")
IMPORTED = re.compile(r"^from (discreet[\w.]*) import (.+)$", re.MULTILINE)
FILE = re.compile(r"`([\w/]+\.py)`")


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MyST and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        other = page.parent / target if target else page
        if not other.exists() or (anchor and anchor not in anchors(other)):
            found.append(link)
    return found


@cache
def names_in(file: Path) -> frozenset[str]:
    """The names that a module defines or imports at its top level, and those of its ``__all__``; nothing is run."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.ImportFrom(names=names):
                found.update(one.asname or one.name for one in names)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                found.update(ast.literal_eval(value))
            case ast.Assign(targets=[ast.Name(id=name)]):
                found.add(name)
    return frozenset(found)


def module_file(parts: list[str]) -> Path | None:
    path = SOURCE.joinpath(*parts)
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


def resolves(dotted: str) -> bool:
    """Whether a dotted path is a module, or a name at the top level of one."""
    parts = dotted.split(".")
    if module_file(parts):
        return True
    file = module_file(parts[:-1])
    return file is not None and parts[-1] in names_in(file)


@cache
def metadata_keys() -> frozenset[str]:
    """The metadata keys of Parquet files, which look like names."""
    return frozenset(f"{METADATA_PREFIX}{key}" for key in facts(cubes()[0]))


def unresolved(text: str) -> list[str]:
    """The dotted paths of a text that do not resolve, except the metadata keys of Parquet files."""
    named = {*DOTTED.findall(text)} - metadata_keys()
    named |= {
        f"{module}.{name.strip()}" for module, names in IMPORTED.findall(text) for name in names.split(",")
    }
    return sorted(one for one in named if not resolves(one))


@cache
def files() -> tuple[str, ...]:
    """Every file of Python."""
    tops = [ROOT / top for top in ("src", "tests", "docs", "examples", "benchmarks", "tools")]
    return tuple(f"/{file.relative_to(ROOT).as_posix()}" for top in tops for file in top.rglob("*.py"))


def missing_files(text: str) -> list[str]:
    """Files of the source, named by the end of their path, that do not exist."""
    return [name for name in FILE.findall(text) if not any(file.endswith(f"/{name}") for file in files())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_module_and_file_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert broken_links(page) == []
    assert unresolved(text) == []
    assert missing_files(text) == []


def test_broken_links_and_stale_names_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n[a](page.md#one-heading) [b](page.md#none) [c](none.md) [d](https://none.example)\n"
    )
    assert broken_links(page) == ["page.md#none", "none.md"]
    text = "`discreet.schema.cube`, `discreet.audit.averaging.judge`, discreet.protect, `discreet.cube`\n"
    assert unresolved(text) == ["discreet.schema.cube"]
    assert unresolved("from discreet.audit.averaging import average, nothing\n") == [
        "discreet.audit.averaging.nothing"
    ]
    assert missing_files("`maths/reproducible.py`, `maths/none.py`") == ["maths/none.py"]


def test_every_subject_of_the_benchmarks_is_described() -> None:
    described = re.findall(
        r"^\| `(\w+)` \|", (ROOT / "benchmarks/README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(described) == sorted(SUBJECTS)
