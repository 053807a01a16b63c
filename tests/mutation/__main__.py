"""Change a module in one place at a time and see whether its tests notice: docs/contribute/mutation-testing.md.

Cosmic Ray makes the changes. Each is tried in a fork of this process, in memory: no file changes. Kernels of the module
run as plain Python or, with --jit, are compiled anew.
"""

import argparse
import ast
import importlib
import os
import random
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from types import CodeType

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

LARGE = (
    "numba",
    "scipy.stats",
    "scipy.optimize",
    "pydantic",
    "fastapi",
    "duckdb",
    "pyarrow",
)
PLAIN = (
    "-xq",
    "--assert=plain",
    "-p",
    "no:cacheprovider",
    "-p",
    "_hypothesis_pytestplugin",
    "--hypothesis-profile=ci",
)
ALIKE = ({"RShift", "LShift", "BitOr", "BitAnd", "BitXor"}, {"Is", "IsNot"})  # only replaced by each other
Mutant = tuple[str, int, int, int]  # operator, which of its places, line, column


def mutants(source: str) -> Iterator[Mutant]:
    """All changes of a module but those of annotations, imports and the decorators of kernels."""
    nodes = (
        getattr(node, name, None)
        for node in ast.walk(ast.parse(source))
        for name in ("annotation", "returns")
    )
    notes = [node for node in nodes if isinstance(node, ast.expr)]
    spans = [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in notes]
    declares = {at for at, line in enumerate(source.splitlines(), 1) if "njit" in line or " import " in line}
    tree = get_ast(source)
    for name in operator_names():
        if "Variable" not in name and not any(len(kind & set(name.split("_"))) == 1 for kind in ALIKE):
            positions = get_operator(name)().mutation_positions
            for which, at in enumerate(start for node in ast_nodes(tree) for start, _ in positions(node)):
                if at[0] not in declares and not any(first <= at <= last for first, last in spans):
                    yield name, which, *at


def sample(source: str, size: int, seed: int) -> list[tuple[Mutant, str]]:
    """At most so many with the changed source, from as many places as possible; what does not compile is left out."""
    found = list(mutants(source))
    random.Random(seed).shuffle(found)
    seen: Counter[tuple[int, ...]] = Counter()
    turn = {}
    for mutant in found:
        seen[mutant[2:]] += 1
        turn[mutant] = seen[mutant[2:]]
    in_turn = sorted(found, key=turn.__getitem__)
    changed = ((one, mutate_code(source, get_operator(one[0])(), one[1])) for one in in_turn)
    return list(islice(((one, code) for one, code in changed if code and _compiles(code)), size))


def _compiles(source: str) -> bool:
    try:
        compile(source, "", "exec")
    except SyntaxError:
        return False
    return True


def tested(module: str, source: str, tests: list[str]) -> int:
    """Run the tests, each a line of arguments of pytest, with this source of the module; 0 where all pass."""
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        return compile(source, loader.path, "exec") if fullname == module else original(loader, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    if "njit" in source:  # compiled kernels of other modules hold those of this one
        importlib.import_module("numba").config.CACHE_DIR = tempfile.mkdtemp()
    return int(any(pytest.main([*PLAIN, *shlex.split(test)]) for test in tests))


def outcome(module: str, source: str, tests: list[str], seconds: float) -> str:
    """What the tests say of this source in a fork: passed, failed, or late."""
    child, end = os.fork(), time.monotonic() + seconds
    if not child:
        try:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(tested(module, source, tests))
        finally:
            os._exit(1)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "failed" if status else "passed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "late"


def main() -> None:
    """Try a sample of the mutants of a module and print those that survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("module", help="such as discreet.maths.keys")
    parser.add_argument("tests", nargs="+", help="lines of arguments of pytest, the fastest first")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="for each mutant")
    parser.add_argument("--jit", action="store_true", help="compile the module's kernels")
    asked = parser.parse_args()
    source = Path("src", *asked.module.split(".")).with_suffix(".py").read_text()
    os.environ["NUMBA_DISABLE_JIT"] = str(int("njit" in source and not asked.jit))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in LARGE:
        importlib.import_module(name)
    if outcome(asked.module, source, asked.tests, 4 * asked.seconds) != "passed":
        sys.exit(f"{asked.module}: the tests of the unchanged module fail, or take too long")
    said: Counter[str] = Counter()
    for (name, _, line, _), changed in sample(source, asked.sample, asked.seed):
        said[found := outcome(asked.module, changed, asked.tests, asked.seconds)] += 1
        if found == "passed":
            print(
                f"survived {asked.module}:{line} {name}: {changed.splitlines()[line - 1].strip()}", flush=True
            )
    print(f"{asked.module}: {dict(said)}")


if __name__ == "__main__":
    main()
