"""Write ``reference/api.md`` and a page for every public name: its signature, docstring, example and public members.

``make docs-reference`` runs it; a test fails when a page differs from what this script writes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum, EnumType
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import discreet

REFERENCE = Path(__file__).parent / "reference"
INDEX = "api.md"
FOLDER = "api"
INTRODUCTION = """\
# The library

`import discreet` gives the names below, each with a page of its own; each is imported when it is first used. Everything
else is internal and may change. `make docs-reference` writes these pages from the program.

```python
import discreet as ds

census = ds.Population(persons=df, person_id="pid", geography=["nuts3", "lau"])
table = ds.protect(census, ds.Cube("lau", "sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
report = ds.audit(table, census)
```

## Commands and functions

Every command has its function. Results are frozen objects with `summary()`, `to_pandas()` and, where there is something
to draw, `chart()`; a notebook shows them as pages.

| command | in the library |
|---|---|
"""
FUNCTIONS = {  # command -> what does the same in the library
    "demo": "demo",
    "init": "Population.inferred, Programme.to_toml",
    "check": "check",
    "swap": "swap",
    "protect": "protect, rehearse",
    "forecast": "forecast",
    "advise": "advise",
    "audit": "audit",
    "attack": "attack, attack_server",
    "utility": "utility, compare_utility",
    "verify": "verify",
    "key": "make_key",
    "sign": "sign",
    "ptable": "ptable, read_ptable, write_ptable, check_ptable",
    "noise": "noise",
    "risk": "risk",
    "infer": "inference",
    "serve": "serve",
    "token": "Tokens",
    "accounting": "accounting, convert",
    "ledger": "open_ledger, Ledger",
    "synth": "synth",
    "study": "study, study_declared_geography",
    "secret": "Secret",
}


ALIASES = (  # names of annotations that stand for several types
    "- `Secrets`: a `Secret`, 32 bytes, or the path of a secret file, `env:NAME` or `fd:NUMBER`.",
    "- `Published`: a `Table`, a `Release`, or the folder of a release.",
    "- `PTables`: a `PTable`, a result of `ptable` or `read_ptable`, or the path of a p-table file.",
    "- `Codes`: code -> label, a list of codes, the path of a file with code,parent,label, or a `Codelist`.",
    "- `AnyTable`: a data frame, Arrow table, DuckDB relation, object with `__arrow_c_stream__`, path or a source.",
    "- `Laws`: a `NoiseLaw`, or the result of `noise`.",
)


def parameter(one: inspect.Parameter) -> str:
    """Name, type and default of a parameter; a default that is not a plain value is left out as three dots."""
    star = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    kind = "" if one.annotation is one.empty else f": {one.annotation}"
    if one.default is one.empty:
        return f"{star}{one.name}{kind}"
    plain = one.default is None or isinstance(one.default, (bool, int, float, str, tuple))
    default = f'"{one.default}"' if isinstance(one.default, str) else repr(one.default) if plain else "..."
    return f"{star}{one.name}{kind} = {default}"


def signature(name: str, value: Any) -> str:
    """How it is called, one parameter per line where there are several."""
    if isinstance(value, EnumType):  # the general one differs between versions of Python
        members: list[Enum] = list(value)
        values = " | ".join(f'"{member.value}"' for member in members)
        return f"{name}({values})"
    try:
        found = inspect.signature(value.__func__ if isinstance(value, classmethod | staticmethod) else value)
    except ValueError:
        return name
    parameters = [one for one in found.parameters.values() if one.name not in ("self", "cls")]
    written = [parameter(one) for one in parameters]
    by_name = [at for at, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY]
    if by_name and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        written.insert(by_name[0], "*")
    shown = not inspect.isclass(value) and found.return_annotation is not found.empty
    returned = f" -> {found.return_annotation}" if shown else ""
    if len(written) < 3:
        return f"{name}({', '.join(written)}){returned}"
    return f"{name}(\n    " + ",\n    ".join(written) + f",\n){returned}"


def text(value: Any) -> str:
    """The docstring as Markdown: double backquotes become single ones, an example a block of code."""
    prose, prompt, example = (inspect.getdoc(value) or "").partition(">>> ")
    shown = f"```pycon\n{prompt}{example.strip()}\n```" if prompt else ""
    return f"{prose.replace('``', '`').strip()}\n\n{shown}".strip()


def members(value: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines itself."""
    for name, member in vars(value).items():
        if not name.startswith("_") and isinstance(
            member, (property, classmethod, staticmethod, FunctionType)
        ):
            yield name, member


def page_name(name: str, value: Any) -> str:
    """The file of a name; classes and functions may differ in capitals only, which some file systems ignore."""
    return f"{name.replace('.', '-').lower()}{'-class' if inspect.isclass(value) else ''}.md"


def page(name: str, value: Any) -> str:
    """Everything about one name."""
    short = name.rpartition(".")[2]
    own = value.__doc__ or ""
    written = not own.startswith(f"{short}(")  # a dataclass without a docstring repeats its signature
    parts = [f"# {name}", f"```python\n{signature(short, value)}\n```", text(value) if written else ""]
    if inspect.isclass(value):
        for member, found in members(value):
            doc = text(found).partition("\n\n")[0].replace("\n", " ")
            shown = member if isinstance(found, property) else " ".join(signature(member, found).split())
            parts.append(f"- `{shown.replace('( ', '(').replace(', )', ')')}`: {doc}")
    lines: list[str] = []
    for part in filter(None, parts):
        lines += [part] if part.startswith("- ") and lines and lines[-1].startswith("- ") else ["", part]
    return "\n".join(lines).lstrip() + "\n"


def first_line(value: Any) -> str:
    """The first sentence of a docstring, on one line of a table."""
    return text(value).partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def table(names: dict[str, Any], folder: str) -> str:
    """Names with their pages and first sentences."""
    rows = (
        f"| [`{name}`]({folder}{page_name(name, value)}) | {first_line(value)} |"
        for name, value in names.items()
    )
    return "\n".join(["| name | what it is |", "|---|---|", *rows]) + "\n"


def module_page(name: str, value: Any, names: dict[str, Any]) -> str:
    """A module with the names that it exports."""
    return f"# {name}\n\n{text(value).partition('::')[0]}\n\n{table(names, '')}"


def types_page(value: Any) -> str:
    """The types without a page of their own: what they are and what they have."""
    lines = ["# types", "", text(value).partition("\n\n")[0], "", *ALIASES, ""]
    for name in value.__all__:
        kind = getattr(value, name)
        shown = text(kind).partition("\n\n")[0].replace("\n", " ")
        own = "" if (kind.__doc__ or "").startswith(f"{kind.__name__}(") else shown
        found = ", ".join(f"`{one}`" for one in _attributes(kind))
        lines += [f"## {name}", "", *([own, ""] if own else []), *([f"Has {found}.", ""] if found else [])]
    return "\n".join(lines).rstrip() + "\n"


def _attributes(kind: Any) -> list[str]:
    """The public fields and properties of a type, or the members of an enum."""
    if issubclass(kind, Enum):
        return [str(one.value) for one in kind]
    fields = [name for base in reversed(kind.__mro__) for name in getattr(base, "__annotations__", {})]
    properties = [name for name, one in vars(kind).items() if isinstance(one, (property, cached_property))]
    return [name for name in dict.fromkeys([*fields, *properties]) if not name.startswith("_")]


def pages() -> dict[str, str]:
    """Every page by its file below ``reference``."""
    found: dict[str, str] = {}
    top: dict[str, Any] = {}
    for name in discreet.__all__:
        value = getattr(discreet, name)
        top[name] = value
        place = f"{FOLDER}/{page_name(name, value)}"
        if not inspect.ismodule(value):
            found[place] = page(name, value)
        elif name == "types":
            found[place] = types_page(value)
        else:
            names = {f"{name}.{one}": getattr(value, one) for one in value.__all__}
            found[place] = module_page(name, value, names)
            found |= {f"{FOLDER}/{page_name(one, below)}": page(one, below) for one, below in names.items()}
    rows = "".join(f"| `{command}` | {_linked(names)} |\n" for command, names in FUNCTIONS.items())
    listed = "\n".join(sorted(place.removesuffix(".md") for place in found))
    tree = f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    found[INDEX] = f"{INTRODUCTION}{rows}\n## Names\n\n{table(top, FOLDER + '/')}\n{tree}"
    return found


def _linked(names: str) -> str:
    def link(name: str) -> str:
        first = name.partition(".")[0]
        return f"[`{name}`]({FOLDER}/{page_name(first, getattr(discreet, first))})"

    return ", ".join(map(link, names.split(", ")))


def main() -> None:
    """Write all pages; those of names that are gone are deleted."""
    (REFERENCE / FOLDER).mkdir(exist_ok=True)
    found = pages()
    for old in (REFERENCE / FOLDER).glob("*.md"):
        if f"{FOLDER}/{old.name}" not in found:
            old.unlink()
    for place, content in found.items():
        (REFERENCE / place).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
