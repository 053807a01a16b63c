"""The scripts of the page: its modules joined into two files, one for the first view and one for what comes after it,
and the Vega bundle of the installed package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from threading import Lock

START = "main.js"
FIRST, LATER = "page.js", "later.js"
_DYNAMIC = re.compile(r'import\("(\./|\.\./)?([^"]+)"\)')
BUNDLE = "window.vegaEmbed = vegaEmbed;"
PASSED_ON = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
)  # a secret may be among the others
MAKE = """
import ctypes, os, sys
if sys.platform == "linux":
    os.nice(10)
    ctypes.CDLL(None).prctl(1, 9)  # ends when the server does
import vl_convert
sys.stdout.buffer.write(vl_convert.javascript_bundle(sys.argv[1]).encode())
"""
_IMPORT = re.compile(r'^import\s+(.+?)\s+from\s+"(\./|\.\./)?([^"]+)";$', re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (async function|function|class|const) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)
_LEFT_OVER = re.compile(r"^(export\b.*|import\b.*\".*)", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(//.*|/\*\*(.|\n)*?\*/)\n", re.MULTILINE)  # on lines of their own
_REMARK = re.compile(r"(?<=[;,{}()\[\]]) +// [^\"`\n]*$", re.MULTILINE)  # at the end of a line
_INDENT = re.compile(r"^ +", re.MULTILINE)  # no text of the modules goes over several lines
_making = Lock()


def joined(modules: Mapping[str, str]) -> dict[str, str]:
    """The modules by name as two scripts: each a function that returns what it exports, called in order of imports.

    They are plain: named and default exports of declarations, imports at the start of lines, no cycles. What is reached
    only by ``import("./x.js")`` is in the second script, which uses the modules of the first one.
    """
    first: list[str] = []
    _follow(START, modules, first, ())
    every = list(first)
    for name in every:  # it grows: a module that comes later may need others that come later
        for found in _DYNAMIC.finditer(modules[name]):
            _follow(_target(name, found[1], found[2]), modules, every, ())
    later = every[len(first) :]
    texts = {name: _INDENT.sub("", _wrapped(name, _bare(modules[name]))) for name in every}
    shared = ", ".join(map(_variable, first))
    return {
        FIRST: "\n".join([*(texts[name] for name in first), f"export {{ {shared} }};"]),
        LATER: "\n".join(
            [
                f'import {{ {shared} }} from "./{FIRST}";',
                *(texts[name] for name in later),
                f"export {{ {', '.join(map(_variable, every))} }};",
            ]
        ),
    }


def _follow(name: str, modules: Mapping[str, str], order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"the scripts import each other: {' > '.join([*above, name])}")
    if name in order:
        return
    for found in _IMPORT.finditer(modules[name]):
        _follow(_source(name, found), modules, order, (*above, name))
    order.append(name)


def _source(name: str, found: re.Match[str]) -> str:
    return _target(name, found[2], found[3])


def _target(name: str, lead: str, path: str) -> str:
    folder = name.rpartition("/")[0]
    return path if not folder or lead == "../" else f"{folder}/{path}"


def _bare(text: str) -> str:
    """A module without its comments."""
    return _REMARK.sub("", _COMMENT.sub("", text))


def _wrapped(name: str, text: str) -> str:
    """A module as a constant: the object of its exports."""
    exported = [found[2] for found in _EXPORT.finditer(text)]
    text = _IMPORT.sub(lambda found: f"const {_taken(found[1])} = {_variable(_source(name, found))};", text)
    text = _EXPORT.sub(r"\1 \2", text)
    text = _DYNAMIC.sub(
        lambda found: (
            f'import("./{LATER}").then((all) => all.{_variable(_target(name, found[1], found[2]))})'
        ),
        text,
    )
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


def texts_in(module: str) -> dict[str, str]:
    """The texts of a language: the members of the object that its module exports, one to a line."""
    lines = (line.strip() for line in module.splitlines())
    members = [line.rstrip(",") for line in lines if line.startswith('"')]
    found: dict[str, str] = json.loads("{" + ",".join(members) + "}")
    return found


def vega_bundle() -> bytes:
    """Vega, Vega-Lite and Vega-Embed of the installed vl-convert as one script; made once, which takes seconds."""
    with _making:
        return _made()


@cache
def _made() -> bytes:
    """Made in a process of its own: it holds the interpreter's lock for seconds, in which no request is answered.

    Ctrl-C in a terminal, which is meant for the server, does not reach it: it ends by itself, and is no error.
    """
    command = [sys.executable, "-P", "-c", MAKE, BUNDLE]
    known = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    done = subprocess.run(command, capture_output=True, check=True, env=known, start_new_session=True)  # noqa: S603
    return done.stdout


def vega_version() -> str:
    """What changes when the bundle does."""
    return version("vl-convert-python")
