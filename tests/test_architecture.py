"""What holds of the whole tree: who imports whom, no print, the public names, the commands, no private places."""

import ast
import importlib
import inspect
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

import discreet
from discreet.cli.app import COMMANDS, app
from tests.source_rules import (
    cycles,
    imports,
    impurities,
    logged,
    modules_imported,
    sql,
    tree,
    untyped,
    untyped_aliases,
    writes_to_a_terminal,
)

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
ORDER = [
    "errors",
    "lazy",
    "kernels",
    "standalone",
    "compiling",
    "text",
    "maths",
    "programme",
    "io",
    "population",
    "synth",
    "swap",
    "tabulate",
    "perturb",
    "hierarchy",
    "formats",
    "release",
    "run",
    "engine",
    "audit",
    "inference",
    "advise",
    "page",
    "report",
    "pipeline",
    "serve",
    "api",
    "cli",
]
EVERY = sorted(SOURCE.rglob("*.py"))
PUBLIC = "discreet.__init__"  # imports everything by name, when it is used
MODULES = sorted(path for path in EVERY if path.parent != SOURCE or path.stem in ORDER)


def package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_every_package_has_its_place_in_the_order() -> None:
    assert {package(path) for path in MODULES} <= set(ORDER)


def from_the_right(path: Path) -> set[str]:
    """The packages that a module imports although they come after its own."""
    imported = {name.split(".")[1] for name in imports(tree(path)) if name.startswith("discreet.")}
    return imported - set(ORDER[: ORDER.index(package(path)) + 1])


def test_a_module_imports_only_from_the_left() -> None:
    assert len(MODULES) > 400
    assert {place(path): found for path in MODULES if (found := from_the_right(path))} == {}


def test_no_modules_import_each_other() -> None:
    trees = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): tree(path) for path in EVERY}
    trees = {name.removesuffix(".__init__"): module for name, module in trees.items() if name != PUBLIC}
    imported = {name: modules_imported(module, set(trees)) for name, module in trees.items()}
    assert sum(map(len, imported.values())) > len(trees)
    assert cycles(imported) == []


def test_mathematics_neither_reads_nor_logs() -> None:
    maths = sorted((SOURCE / "maths").rglob("*.py"))
    assert len(maths) > 70
    assert {place(path): found for path in maths if (found := impurities(tree(path)))} == {}


def test_a_module_says_what_it_is_and_prints_nothing() -> None:
    assert [place(path) for path in EVERY if not ast.get_docstring(tree(path))] == []
    assert {place(path): found for path in EVERY if (found := writes_to_a_terminal(tree(path)))} == {}


def test_only_the_server_logs_and_only_this() -> None:
    logs = {path: logged(tree(path)) for path in EVERY}
    told = {
        "where_of(error)",
        "scope['method']",
        "where",
        "status",
        "1000 * seconds",
    }  # no value of any record
    assert {one for found in logs.values() for one in found} == told
    loggers = {path for path in EVERY if any(name.startswith("logging") for name in imports(tree(path)))}
    assert {package(path) for path in loggers | {path for path, found in logs.items() if found}} == {"serve"}


def test_only_io_has_sql_text() -> None:
    found = {place(path): sql(tree(path)) for path in MODULES if package(path) != "io"}
    shown = found.pop("programme/draft.py")  # a drafted programme shows a query
    assert len(shown) == 1
    assert shown[0].startswith("SELECT ")
    assert {name: texts for name, texts in found.items() if texts} == {}


# documents by nature: their keys are those of a format, and no package reads them back
DOCUMENTS = {
    "formats/json_stat.py write_json_stat": "JSON-stat",
    "formats/json_stat.py head": "JSON-stat",
    "formats/json_stat.py dimension": "JSON-stat",
    "io/store.py add_new": "rows of a table of SQLAlchemy",
    "io/store.py put": "rows of a table of SQLAlchemy",
    "io/store.py rows_of": "parameters of a statement of SQLAlchemy",
    "page/charts.py Chart.spec": "Vega-Lite",
    "programme/programme.py Programme.canonical": "the text that is digested",
    "programme/reading.py checked_declaration": "the content of a programme file",
    "programme/reading.py read_toml": "the content of a programme file",
    "programme/swap.py SwapRule.canonical": "the text that is digested",
    "report/advice.py write_charts": "advice.json",
    "report/swap.py machine_figures": "figures.json",
}


def test_no_dictionaries_of_anything_between_packages() -> None:
    """A public signature with ``dict[str, Any]`` that another package imports: only documents are left."""
    trees = {path: tree(path) for path in EVERY}
    dotted = {path: f"discreet.{'.'.join(path.relative_to(SOURCE).with_suffix('').parts)}" for path in trees}
    aliases = {f"{dotted[path]}.{name}" for path, module in trees.items() for name in untyped_aliases(module)}
    users: dict[str, set[str]] = {}
    for path, module in trees.items():
        for name in imports(module):
            users.setdefault(name, set()).add(package(path))
    found = {
        f"{place(path)} {name}"
        for path, module in trees.items()
        for name in untyped(module, {one.rpartition(".")[2] for one in imports(module) if one in aliases})
        if users.get(f"{dotted[path]}.{name.split('.')[0]}", set()) - {package(path)}
    }
    assert found == set(DOCUMENTS), "pass a dataclass instead of a dictionary"


def test_the_map_names_every_package_and_only_modules_that_exist() -> None:
    """docs/contribute/architecture.md: its table is the order of packages; each path that it names exists."""
    page = (ROOT / "docs" / "contribute" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+)/?` \|", page, flags=re.MULTILINE)
    assert rows == [name for name in ORDER if name in {package(path) for path in MODULES}]
    named = set(re.findall(r"`((?:[a-z0-9_]+/)+[a-z0-9_]+\.py)`", page))
    assert len(named) > 40
    assert {name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()} == set()


def test_the_public_names_are_these() -> None:
    assert sorted(discreet.__all__) == [
        "Accounting",
        "AttackReport",
        "AuditReport",
        "Bands",
        "CellKey",
        "Checked",
        "CheckedPTable",
        "ComparedUtility",
        "Cube",
        "DiscreetError",
        "DiscreteGaussian",
        "EpsilonDelta",
        "GaussianNoise",
        "Geometric",
        "Hierarchical",
        "LaplaceNoise",
        "Ledger",
        "Mistakes",
        "Neighbours",
        "Noise",
        "NoiseLaw",
        "PTable",
        "PTableFile",
        "Population",
        "Private",
        "Problem",
        "Programme",
        "PureEpsilon",
        "Release",
        "Result",
        "Rho",
        "RiskLimits",
        "Secret",
        "SparkEngine",
        "Swap",
        "SwapResult",
        "SyntheticCensus",
        "Table",
        "TableAxis",
        "Tokens",
        "accounting",
        "advise",
        "ages",
        "attack",
        "attack_server",
        "audit",
        "bands",
        "check",
        "check_ptable",
        "compare_utility",
        "convert",
        "demo",
        "forecast",
        "inference",
        "load_programme",
        "make_key",
        "noise",
        "open_ledger",
        "open_release",
        "protect",
        "ptable",
        "read_ptable",
        "rehearse",
        "risk",
        "serve",
        "sign",
        "study",
        "study_declared_geography",
        "swap",
        "synth",
        "types",
        "utility",
        "verify",
        "write_ptable",
    ]
    for name in set(discreet.__all__) - {"inference", "risk", "types"}:
        assert getattr(discreet, name).__name__ == name
    assert dir(discreet) == sorted([*discreet.__all__, "__version__"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", discreet.__version__)
    with pytest.raises(AttributeError, match="has no 'nothing'; it has Accounting"):
        _ = discreet.nothing


def test_commands_stay_what_they_are_when_a_package_of_their_name_is_imported() -> None:
    importlib.import_module("discreet.audit.attack")
    assert callable(discreet.audit)
    assert discreet.audit.attack.ATTACKS  # type: ignore[attr-defined]
    assert "Recount the confidential records" in (discreet.audit.__doc__ or "")
    assert list(inspect.signature(discreet.swap).parameters)[:2] == ["what", "rule"]
    for name in ("audit", "advise", "serve", "swap", "synth"):
        assert importlib.import_module(f"discreet.{name}").__name__ == f"discreet.{name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_called_and_is_documented(name: str) -> None:
    importlib.import_module(f"discreet.cli.{name}")
    command = get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    assert command is not None
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"discreet {name}" in page.read_text(encoding="utf-8") for page in pages)


def tracked() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git working tree")
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in told.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_tracked_file_names_a_place_of_one_machine_or_a_registry() -> None:
    places = [f"/{top}/" for top in ("work", "home", "root", "Users", "tmp/venv")]
    private = re.compile(
        "|".join([*(rf"(?<![\w.]){place}" for place in places), "://[^ ]*/simple\\b", "-index-" + "url"])
    )
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found = private.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found and found[0]}"
