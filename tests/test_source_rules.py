"""The rules for source files find what they are there to find, and nothing else."""

import ast

import pytest

from tests.source_rules import (
    cycles,
    imports,
    impurities,
    logged,
    modules_imported,
    sql,
    untyped,
    writes_to_a_terminal,
)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os", ["os"]),
        ("import os.path as p", ["os.path"]),
        ("from os import environ", ["os.environ"]),
        ("from pathlib import Path", ["pathlib.Path"]),
        ("def f():\n    from logging import getLogger", ["logging.getLogger"]),
        ("import pyarrow.parquet", ["pyarrow.parquet"]),
        ("from pyarrow import parquet", ["pyarrow.parquet"]),
        ("from random import random", ["random.random"]),
        ("import secrets", ["secrets"]),
        ("from datetime import datetime", ["datetime.datetime"]),
        ("from numpy.random import PCG64", ["numpy.random.PCG64"]),
        ("import numpy as np\nnp.random.default_rng()", ["default_rng"]),
        ("import numpy as np\nnp.fromfile('x')", ["fromfile"]),
        ("open('x')", ["open"]),
        ("path.open()", ["open"]),
        ("path.read_text()", ["read_text"]),
        ("import time\ntime.time()", ["time.time"]),
        ("from time import time", ["time.time"]),
        ("import sys\nsys.argv", ["sys.argv"]),
        ("import sys\nimport time\nsys.byteorder\ntime.monotonic()", []),
        ("import numpy as np\nfrom math import log\nfrom discreet.errors import Mistakes\nnp.log(2)", []),
    ],
)
def test_impure_mathematics_is_found(source: str, found: list[str]) -> None:
    assert impurities(ast.parse(source)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("print(1)", ["print"]),
        ("def f():\n    breakpoint()", ["breakpoint"]),
        ("eval('1')", ["eval"]),
        ("import sys\nsys.stdout.write('x')", ["sys.stdout"]),
        ("import sys\nx = sys.stderr", ["sys.stderr"]),
        ("from sys import stdout", ["sys.stdout"]),
        ("from pprint import pprint", ["pprint.pprint"]),
        ("import traceback\ntraceback.print_exc()", ["traceback.print_exc"]),
        ("from traceback import format_exc", ["traceback.format_exc"]),
        ("import traceback\ntraceback.extract_tb(x)", []),
        ("import sys\nsys.exit(1)\nconsole.print('x')", []),
    ],
)
def test_writing_to_a_terminal_is_found(source: str, found: list[str]) -> None:
    assert writes_to_a_terminal(ast.parse(source)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("logger.info('started')", []),
        ("logger.info('%s', row)", ["row"]),
        ("logger.info(f'{row}')", ["f'{row}'"]),
        ("logging.warning(str(error))", ["str(error)"]),
        ("mine = logging.getLogger('x')\nmine.error('a', exc_info=True)", ["exc_info="]),
        ("logging.getLogger('x').info('%d', count)", ["count"]),
        ("logger.exception('failed')", [".exception"]),
        ("found.error(row)", []),
    ],
)
def test_what_is_logged_is_found(source: str, found: list[str]) -> None:
    assert logged(ast.parse(source)) == found


@pytest.mark.parametrize(
    "source",
    [
        "x = 'SELECT a FROM b'",
        "x = f'SELECT {a} FROM {b}'",
        "x = 'SELECT ' + a + ' FROM b'",
        "x = 'SELECT a\\nFROM b'",
        "def f(q='DELETE FROM b'): pass",
        "x = 'INSERT OR IGNORE INTO b VALUES (1)'",
        "x = 'CREATE TEMP TABLE b (a INT)'",
        "x = 'UPDATE b SET a = 1'",
        "x = 'PRAGMA journal_mode'",
        "from sqlalchemy import text",
        "import duckdb",
        "from adbc_driver_postgresql import dbapi",
    ],
)
def test_sql_is_found(source: str) -> None:
    assert sql(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "'''Turns SELECT a FROM b into a table.'''",
        "def f():\n    '''SELECT a FROM b.'''",
        "x = 'add query = \"SELECT ..\"'",
        "x = 'Select codes from a list'",
        "from sqlalchemy import select",
    ],
)
def test_what_is_no_sql_is_left_alone(source: str) -> None:
    assert sql(ast.parse(source)) == []


def test_imports_are_found_wherever_they_stand() -> None:
    module = ast.parse("import a.b\nfrom c import d, e as f\ndef g():\n    if h:\n        from i.j import k")
    assert list(imports(module)) == ["a.b", "c.d", "c.e", "i.j.k"]
    assert modules_imported(module, {"a.b", "c", "c.d", "i.j"}) == {"a.b", "c.d", "c", "i.j"}
    with pytest.raises(AssertionError, match="relative import"):
        list(imports(ast.parse("from . import a")))


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    assert cycles({"a": {"a"}}) == [["a"]]
    assert cycles({"a": {"b"}, "b": {"a"}, "c": {"a"}}) == [["a", "b"]]
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"d", "a"}, "d": {"e"}, "e": {"d"}}) == [
        ["d", "e"],
        ["a", "b", "c"],
    ]


SIGNATURES = """
Section = Mapping[str, Any]
Plain = dict[str, int]
class Public:
    field: dict[str, Any]
    typed: Plain
    _own: dict[str, Any]
    def __init__(self, given: Mapping[str, Any] | None) -> None: ...
    def summary(self) -> list[dict[str, Any]]: ...
    def _hidden(self) -> dict[str, Any]: ...
    def fine(self) -> dict[str, int]:
        inside: dict[str, Any] = {}
class _Private:
    def summary(self) -> dict[str, Any]: ...
def aliased(found: Sequence[Section]) -> None: ...
def taken(*rows: dict[str, Any], **named: Any) -> None: ...
def borrowed(given: Imported) -> None: ...
async def served() -> dict[str, Any]: ...
def nested() -> dict[str, dict[str, Any]]: ...
"""


def test_dictionaries_of_anything_in_signatures_are_found() -> None:
    found = ["Public.field", "Public.__init__", "Public.summary", "aliased", "taken", "served", "nested"]
    assert untyped(ast.parse(SIGNATURES)) == found
    assert set(untyped(ast.parse(SIGNATURES), {"Imported"})) == {*found, "borrowed"}
