"""The scripts of the page: its modules joined into one file, and the Vega bundle of the installed package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from threading import Lock

import vl_convert

START = "main.js"
BUNDLE = "window.vegaEmbed = vegaEmbed;"
_IMPORT = re.compile(r'^import\s+(.+?)\s+from\s+"(\./|\.\./)?([^"]+)";$', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (async function|function|class|const) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)
_LEFT_OVER = re.compile(r"^(export\b.*|import\b.*\".*)", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(//.*|/\*\*(.|\n)*?\*/)\n", re.MULTILINE)  # on lines of their own
_making = Lock()


def joined(modules: Mapping[str, str]) -> str:
    """The modules by name as one script: each a function that returns what it exports, called in order of imports.

    They are plain: named and default exports of declarations, imports at the start of lines, no cycles.
    """
    order: list[str] = []
    _follow(START, modules, order, ())
    return "\n".join(_wrapped(name, _COMMENT.sub("", modules[name])) for name in order)


def _follow(name: str, modules: Mapping[str, str], order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"the scripts import each other: {' > '.join([*above, name])}")
    if name in order:
        return
    for found in _IMPORT.finditer(modules[name]):
        _follow(_source(name, found), modules, order, (*above, name))
    order.append(name)


def _source(name: str, found: re.Match[str]) -> str:
    folder = name.rpartition("/")[0]
    return found[3] if not folder or found[2] == "../" else f"{folder}/{found[3]}"


def _wrapped(name: str, text: str) -> str:
    """A module as a constant: the object of its exports."""
    exported = [found[2] for found in _EXPORT.finditer(text)]
    text = _IMPORT.sub(lambda found: f"const {_taken(found[1])} = {_variable(_source(name, found))};", text)
    text = _EXPORT.sub(r"\1 \2", text)
    if _DEFAULT.search(text):
        text, exported = _DEFAULT.sub("const whole = ", text), [*exported, "default: whole"]
    left = _LEFT_OVER.search(text)
    if left is not None:
        raise ValueError(f"{name}: cannot be joined: {left[0]}")
    return f"const {_variable(name)} = (() => {{\n{text}\nreturn {{ {', '.join(exported)} }};\n}})();\n"


def _taken(names: str) -> str:
    """What is imported, as a pattern of an assignment: ``* as api``, ``{ a, b as c }`` or a default."""
    if names.startswith("*"):
        return names.rsplit(maxsplit=1)[-1]
    if names.startswith("{"):
        return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)
    return f"{{ default: {names} }}"


def _variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))


def vega_bundle() -> bytes:
    """Vega, Vega-Lite and Vega-Embed of the installed vl-convert as one script; made once, which takes seconds."""
    with _making:
        return _made()


@cache
def _made() -> bytes:
    return str(vl_convert.javascript_bundle(BUNDLE)).encode()


def vega_version() -> str:
    """What changes when the bundle does."""
    return version("vl-convert-python")
