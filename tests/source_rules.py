"""Rules that a source file must follow, each a function from a syntax tree to the faults that it finds.

``test_architecture`` applies them to the source tree, ``test_source_rules`` to small sources that break them.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

from discreet.lazy import importing

PURE = {  # top-level packages that compute; none of them is there to read, write, log or tell the time
    *("__future__", "collections", "dataclasses", "decimal", "enum", "fractions", "functools", "hashlib"),
    *("itertools", "math", "typing", "numpy", "numba", "scipy", "flint", "cryptography", "ortools"),
    "discreet",
}
PURE_ATTRIBUTES = {
    "sys.byteorder",
    "time.monotonic",
}  # the solver of a reconstruction reports its own seconds
READING_AND_WRITING = {
    *("open", "read_text", "write_text", "read_bytes", "write_bytes", "urandom", "default_rng"),
    *("fromfile", "tofile", "memmap", "loadtxt", "savetxt", "genfromtxt", "savez", "savez_compressed"),
}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
ERROR_TEXT = re.compile(r"traceback\.(print|format)_")  # the text of an error may hold a value
LOG_CALLS = {"debug", "info", "warning", "error", "critical", "exception", "log"}
STATEMENT = re.compile(
    r"\bSELECT\b.*\bFROM\b|\bINSERT\s+(OR\s+\w+\s+)?INTO\b|\bDELETE\s+FROM\b|\bUPDATE\b.*\bSET\b"
    r"|\b(CREATE|DROP|ALTER)\s+(OR\s+REPLACE\s+)?(TEMP\w*\s+)?(TABLE|VIEW|INDEX|TRIGGER|SCHEMA)\b|\bPRAGMA\s+\w",
    re.DOTALL,
)
UNTYPED = re.compile(
    r"\b(dict|Mapping|MutableMapping)\[(str|int \| str), (Any|dict\[str, Any\]|Mapping\[str, Any\])\]"
)


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    with importing():
        return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(module: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a syntax tree."""
    with importing():
        return tuple(ast.walk(module))


@cache
def imports(module: ast.Module) -> tuple[str, ...]:
    """Every imported name in full, wherever the import stands: ``a.b`` for ``import a.b`` and ``from a import b``."""
    found: list[str] = []
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)


def _calls(module: ast.Module) -> Iterator[ast.Call]:
    yield from (node for node in nodes(module) if isinstance(node, ast.Call))


@cache
def _attributes(module: ast.Module) -> tuple[str, ...]:
    return tuple(ast.unparse(node) for node in nodes(module) if isinstance(node, ast.Attribute))


def _called(call: ast.Call) -> str:
    """The last name of what is called: ``open`` for both ``open(..)`` and ``path.open(..)``."""
    return ast.unparse(call.func).rsplit(".", 1)[-1]


def impurities(module: ast.Module) -> list[str]:
    """Imports and calls by which mathematics would read, write, log, draw at random or look at the clock."""
    allowed = {name.split(".")[0] for name in PURE_ATTRIBUTES}
    partly = {name for name in imports(module) if name.split(".")[0] in allowed}
    return [
        *(name for name in imports(module) if name.split(".")[0] not in PURE | allowed),
        *(name for name in partly if "." in name and name not in PURE_ATTRIBUTES),
        *(
            name
            for name in _attributes(module)
            if name.split(".")[0] in partly and name not in PURE_ATTRIBUTES
        ),
        *(name for name in imports(module) if name.startswith("numpy.random")),
        *(_called(call) for call in _calls(module) if _called(call) in READING_AND_WRITING),
    ]


def writes_to_a_terminal(module: ast.Module) -> list[str]:
    """Calls that print, stop in a debugger or run text as code, and streams that are written to by hand."""
    banned = {"print", "pprint", "breakpoint", "eval", "exec", "input"}
    return [
        *(
            call.func.id
            for call in _calls(module)
            if isinstance(call.func, ast.Name) and call.func.id in banned
        ),
        *(name for name in _attributes(module) if name in {f"sys.{stream}" for stream in STREAMS}),
        *(name for name in imports(module) if name in {f"sys.{stream}" for stream in STREAMS}),
        *(name for name in [*_attributes(module), *imports(module)] if ERROR_TEXT.match(name)),
        *(name for name in imports(module) if name.split(".")[0] in {"pprint", "builtins", "pdb"}),
    ]


def logged(module: ast.Module) -> list[str]:
    """What is handed to a log besides plain text, as it is written; a message put together on the spot counts too."""
    found: list[str] = []
    loggers = {
        ast.unparse(node.targets[0])
        for node in nodes(module)
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("logging.getLogger(")
    } | {"logging", "logger", "access", "errors"}
    for call in _calls(module):
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in LOG_CALLS:
            continue
        owner = ast.unparse(call.func.value)
        if owner in loggers or owner.startswith("logging.getLogger("):
            values = [*call.args, *(keyword.value for keyword in call.keywords)]
            found += [ast.unparse(value) for value in values if not isinstance(value, ast.Constant)]
            found += [f"{keyword.arg}=" for keyword in call.keywords]
            found += [".exception"] if call.func.attr == "exception" else []
    return found


def _texts(module: ast.Module) -> Iterator[str]:
    """Every string in the code, f-strings by their fixed parts; docstrings are left out."""
    docstrings = {
        id(node.body[0].value)
        for node in nodes(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield ast.unparse(node)


def sql(module: ast.Module) -> list[str]:
    """Texts that are SQL statements, and SQLAlchemy's ``text``, which would take one."""
    return [
        *(text for text in _texts(module) if STATEMENT.search(text)),
        *(name for name in imports(module) if name in {"sqlalchemy.text", "sqlalchemy.sql.text"}),
        *(name for name in imports(module) if name.split(".")[0] in {"duckdb", "sqlite3", "psycopg"}),
        *(name for name in imports(module) if name.startswith("adbc_driver")),
    ]


def cycles(imported: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others (Tarjan's components)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in sorted(imported[module]):
            if other not in number:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == number[module]:
            at = stack.index(module)
            group, stack[at:] = sorted(stack[at:]), []
            if len(group) > 1 or module in imported[module]:
                found.append(group)

    for module in sorted(imported):
        if module not in number:
            visit(module)
    return found


def modules_imported(module: ast.Module, known: set[str]) -> set[str]:
    """The modules among the known that a module imports: ``from a import b`` is ``a.b`` if that is one, else ``a``."""
    return {
        name if name in known else name.rpartition(".")[0]
        for name in imports(module)
        if name in known or name.rpartition(".")[0] in known
    }


def untyped_aliases(module: ast.Module) -> set[str]:
    """The names that a module gives to dictionaries of anything: ``Section = Mapping[str, Any]``."""
    return {
        target.id
        for node in module.body
        if isinstance(node, ast.Assign) and UNTYPED.search(ast.unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def untyped(module: ast.Module, aliases: Set[str] = frozenset()) -> list[str]:
    """Public functions, methods and fields in whose signature a dictionary of anything stands, by their names."""
    names = aliases | untyped_aliases(module)
    words = re.compile("|".join([UNTYPED.pattern, *(rf"\b{name}\b" for name in sorted(names))]))

    def holds(node: ast.expr | None) -> bool:
        return node is not None and words.search(ast.unparse(node)) is not None

    def within(body: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from within(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name.startswith("_") and node.name not in ("__init__", "__call__"):
                    continue
                given = node.args
                all_ = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                if holds(node.returns) or any(one is not None and holds(one.annotation) for one in all_):
                    yield prefix + node.name
            elif isinstance(node, ast.AnnAssign) and holds(node.annotation):
                name = ast.unparse(node.target)
                yield from [] if name.startswith("_") else [prefix + name]

    return list(within(module.body, ""))
