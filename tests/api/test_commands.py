"""Every command has its function in the library, and messages of the library name its arguments."""

import ast
import copy
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import discreet as ds
from discreet.api.arguments import COMMANDS as SUGGESTED
from discreet.api.arguments import OPTION, OPTIONS, in_arguments, names_arguments
from discreet.cli.app import COMMANDS
from discreet.errors import BudgetExceeded, mistake
from tests.api.test_protect import CUBE, FRAME, KEY, NOISE, census
from tests.api.test_reference import generator
from tests.source_rules import nodes, tree

FUNCTIONS: dict[str, str] = generator().FUNCTIONS
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "discreet"
ONLY_COMMANDS = {  # files whose messages no function of the library can cause
    "cli", "page/skeleton.py", "page/style.py",
}  # fmt: skip


def test_every_command_has_a_function() -> None:
    assert list(FUNCTIONS) == list(COMMANDS)
    for names in FUNCTIONS.values():
        for name in names.split(", "):
            first, *rest = name.split(".")
            assert first in ds.__all__
            value = getattr(ds, first)
            assert all(hasattr(value, one) for one in rest)


def test_every_name_is_pickled_and_copied_as_itself() -> None:
    """Pools of processes do it with functions; threads that use a name first at once have the same object."""
    for name in ds.__all__:
        found = getattr(ds, name)
        if not inspect.ismodule(found):
            assert pickle.loads(pickle.dumps(found)) is found, name
            assert copy.deepcopy(found) is found, name
            assert ds.__getattr__(name) is found, name


def results() -> dict[str, Any]:
    release = ds.protect(census(), [CUBE], NOISE, secret=KEY, progress=False)
    law = ds.noise("geometric", epsilon=1)
    return {
        "check": ds.check(census(), CUBE, NOISE, progress=False),
        "protect": release,
        "table": release[CUBE.id],
        "forecast": ds.forecast(census(of="person"), CUBE, NOISE, epsilon=[1]),
        "utility": ds.utility(release, progress=False),
        "verify": ds.verify(release),
        "ptable": ds.ptable(V=2, D=5),
        "noise": law,
        "averaging": ds.risk.averaging(V=2, k=40, t=10, D=5),
        "bound": ds.risk.bound(V=2, D=5, tuples=100),
        "dp": ds.risk.dp(law),
        "bayes": ds.risk.bayes(law, known=3),
        "redundancy": ds.risk.redundancy(census().programme(CUBE, NOISE)),
        "subsets": ds.risk.subsets(law, records=16, queries=[64], repetitions=1),
        "differencing": ds.risk.differencing(FRAME, "nuts3", "lau"),
        "advise": ds.advise(census(), CUBE, NOISE, progress=False),
        "study": ds.study(1000, k=[50], epsilon=[1], progress=False),
        "accounting": ds.accounting([ds.Rho(Fraction(1))], delta=1e-10),
        "convert": ds.convert(rho=1, delta=1e-10),
        "synth": ds.synth(500, tables=["3.1"], progress=False),
    }


def test_results_are_shown_summarised_and_framed() -> None:
    for name, one in results().items():
        assert one.summary(), name
        assert "<" in one._repr_html_(), name
        assert len(one.to_pandas().columns) > 0, name


def arguments_known() -> set[str]:
    """The arguments of all public functions and methods, and the limits of the adviser."""
    callables = [getattr(ds, name) for name in ds.__all__]
    callables += [getattr(ds.risk, name) for name in ds.risk.__all__]
    found = {one.name for one in fields(ds.RiskLimits)}
    for value in callables:
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception | Enum)):
            found |= set(inspect.signature(value).parameters)
    return found | set(inspect.signature(ds.Population.inferred).parameters)


@cache
def texts() -> list[tuple[Path, str]]:
    """Texts of the source that name options, docstrings left out."""
    return list(found_texts())


def found_texts() -> Iterator[tuple[Path, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if place.split("/")[0] in ONLY_COMMANDS or place in ONLY_COMMANDS or place.startswith("api/"):
            continue
        source = path.read_text(encoding="utf-8")
        if "--" not in source and "discreet " not in source and " = " not in source:
            continue
        walked = nodes(tree(path))
        docs = {id(node.value) for node in walked if isinstance(node, ast.Expr)}
        for node in walked:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                yield path, node.value


def test_every_option_in_a_message_has_an_argument() -> None:
    known, unknown = arguments_known(), set()
    for path, text in texts():
        if "--" not in text:
            continue
        for command in SUGGESTED:
            text = text.replace(command, "")
        if re.search(
            r"<!--|var\(--|-->|^--part$|pip install --upgrade|engine spark|engine embedded|--host |--port |--data ",
            text,
        ):
            continue
        for option in OPTION.findall(text):
            if option not in OPTIONS:
                unknown.add(f"{path.name}: --{option}")
    assert unknown == set(), "add them to OPTIONS"
    assert {one for one in OPTIONS.values() if one not in known} == set()


def test_every_suggestion_occurs_in_a_message() -> None:
    together = "\n".join(text for _, text in texts())
    assert [one for one in SUGGESTED if one not in together] == []


def test_errors_name_arguments_in_place_of_options() -> None:
    @names_arguments
    def refuse(error: Exception) -> None:
        raise error

    with pytest.raises(ds.Mistakes) as found:
        refuse(mistake("out", "--own-server", "no", "accept it with --another-ptable, or --filter sex"))
    assert str(found.value) == "out: own_server: no; accept it with another_ptable=, or filtered= sex"
    with pytest.raises(BudgetExceeded, match="give rho= 2"):
        refuse(BudgetExceeded("give --rho 2"))
    with pytest.raises(ds.Mistakes, match=r"make one: Secret\.new\(\)\.save"):
        ds.Secret.read("/no/such/secret.key")
    for text in (
        "a range from 1--5, x -- y",
        "file census--out.csv",
        "column --height",
        "a --out-of-place name",
    ):
        assert in_arguments(text) == text


def test_importing_the_library_loads_none_of_its_parts() -> None:
    program = (
        "import sys; before = set(sys.modules); import discreet; print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [name for name in loaded if name.startswith("discreet")] == ["discreet"]
    assert not {"numpy", "pyarrow", "pandas", "polars", "numba", "altair"} & set(loaded)
