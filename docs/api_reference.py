"""Write ``reference/api.md``: every public name with its signature, docstring and public members.

``make docs-reference`` runs it; a test fails when the page differs from what this script writes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import discreet

PAGE = Path(__file__).parent / "reference" / "api.md"
INTRODUCTION = """\
# The library

`import discreet` gives the names below; each is imported when it is first used. Everything else is internal and may
change. `make docs-reference` writes this page from the program.

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
    "protect": "protect",
    "forecast": "forecast",
    "advise": "advise",
    "audit": "audit",
    "attack": "attack, attack_server",
    "utility": "utility",
    "verify": "verify",
    "key": "make_key",
    "sign": "sign",
    "ptable": "ptable",
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


def section(name: str) -> str:
    """Everything about one name."""
    value = getattr(discreet, name)
    if inspect.ismodule(value):
        return _module(name, value)
    own = value.__doc__ or ""
    written = not own.startswith(f"{name}(")  # a dataclass without a docstring repeats its signature
    parts = [f"## {name}", f"```python\n{signature(name, value)}\n```", text(value) if written else ""]
    if inspect.isclass(value):
        for member, found in members(value):
            doc = text(found).partition("\n\n")[0].replace("\n", " ")
            shown = member if isinstance(found, property) else " ".join(signature(member, found).split())
            parts.append(f"- `{shown.replace('( ', '(').replace(', )', ')')}`: {doc}")
    lines: list[str] = []
    for part in filter(None, parts):
        lines += [part] if part.startswith("- ") and lines and lines[-1].startswith("- ") else ["", part]
    return "\n".join(lines) + "\n"


def _module(name: str, value: Any) -> str:
    """A module with the names that it exports, each with the first line of its docstring."""
    rows = [f"- `{one}`: {text(getattr(value, one)).splitlines()[0]}" for one in value.__all__]
    return "\n".join([f"\n## {name}\n", text(value).partition("\n\n")[0], "", *rows]) + "\n"


def reference() -> str:
    """The whole page."""
    rows = "".join(f"| `{command}` | {_linked(names)} |\n" for command, names in FUNCTIONS.items())
    return INTRODUCTION + rows + "".join(section(name) for name in discreet.__all__)


def _linked(names: str) -> str:
    return ", ".join(f"[`{name}`](#{name.partition('.')[0].lower()})" for name in names.split(", "))


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
