"""Write ``reference/dependencies.md``: what each group of dependencies is for, and its licences by their metadata.

``make docs-reference`` runs it; a test fails when the page differs from what this script writes.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "dependencies.md"
GROUPS = {
    "core": "`pip install discreet`: all commands except those below, `discreet demo` among them.",
    "serve": "`pip install 'discreet[serve]'`: the table builder, `discreet serve`.",
    "databases": "`pip install 'discreet[databases]'`: records, ledgers and stores in PostgreSQL, records in SQLite.",
    "spark": "`pip install 'discreet[spark]'`: on Spark (Java 17). `requirements-spark.lock` has the versions.",
    "docs": "`pip install 'discreet[docs]'`: what builds these pages. `requirements-docs.lock` has the versions.",
}
WHY = {
    "numpy": "arrays",
    "scipy": "linear programmes, sparse matrices, distributions",
    "numba": "compiled kernels: counting, keys, swapping, attacks",
    "llvmlite": "LLVM, which links stored machine code of kernels",
    "cffi": "calling that machine code",
    "pyarrow": "Parquet, CSV, columns in memory",
    "duckdb": "queries over files, DuckDB databases",
    "pydantic": "the declared models of the programme file",
    "tomlkit": "writing programme files without losing comments",
    "typer": "the command line",
    "rich": "progress and messages on a terminal",
    "cryptography": "AES: the random bits of noise; Ed25519: signatures of releases",
    "pysdmx": "SDMX structures",
    "xlsxwriter": "XLSX files",
    "orjson": "JSON-stat and PX files",
    "altair": "specifications of charts",
    "vl-convert-python": "drawing charts without a browser",
    "adbc-driver-manager": "errors and connections of database drivers",
    "python-flint": "exact arithmetic of noise laws and accounting",
    "sqlalchemy": "the ledger of budgets, and the server's store",
    "ortools": "the constraint solver of the reconstruction attack",
    "fastapi": "routes and OpenAPI",
    "prometheus-client": "metrics of the HTTP server",
    "uvicorn": "the HTTP server",
    "httptools": "its parser",
    "uvloop": "its event loop (not on Windows)",
    "adbc-driver-postgresql": "reading records from PostgreSQL",
    "adbc-driver-sqlite": "reading records from SQLite",
    "psycopg": "ledger and store in PostgreSQL",
    "pyspark": "counting on a cluster",
    "pandas": "which pyspark imports where columns are passed to Python",
    "furo": "the theme",
    "myst-parser": "Markdown for Sphinx",
    "sphinx": "the generator of the site",
    "sphinxcontrib-katex": "KaTeX, which draws formulas when the site is built",
    "mini-racer": "V8, which runs KaTeX",
    "ziamath": "the font of formulas, STIX Two Math (OFL)",
}
ELSEWHERE = {  # licences of what the developers' environment does not contain
    "pyspark": "Apache-2.0",
    "furo": "MIT",
    "myst-parser": "MIT",
    "sphinx": "BSD-2-Clause",
    "sphinxcontrib-katex": "MIT",
    "mini-racer": "ISC",
    "ziamath": "MIT",
}
CLASSIFIED = {
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
}
INTRODUCTION = """\
# Dependencies and licences

Discreet is under the Apache License 2.0. Each group has its direct dependencies; the last table has what these
bring along. Licences are those that the packages state about themselves. A command that needs an absent group reports
which one to install and ends with exit code 2. `make docs-reference` writes this page.
"""


def groups() -> dict[str, list[str]]:
    """Group -> names of its direct dependencies, as pyproject.toml declares them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {"core": project["dependencies"], **project["optional-dependencies"]}
    return {
        group: [re.split(r"[\[<>=;~! ]", one)[0].lower() for one in lines]
        for group, lines in declared.items()
    }


def licence(name: str) -> str:
    """The licence that an installed package states: an expression, else its classifiers, else a short text."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    stated = metadata(name)
    if "License-Expression" in stated:
        return stated["License-Expression"]
    classes = [
        one.rpartition(" :: ")[2] for one in stated.get_all("Classifier") or [] if one.startswith("License")
    ]
    if classes:
        return " or ".join(CLASSIFIED[one] for one in classes)
    return str(stated["License"]).partition("\n")[0]


def locked() -> list[str]:
    """Every package of the developers' environment."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.MULTILINE)


def reference() -> str:
    """The whole page."""
    found = groups()
    parts = [INTRODUCTION]
    for group, text in GROUPS.items():
        rows = [f"| {name} | {WHY[name]} | {licence(name)} |" for name in found[group]]
        parts += [
            f"## {group}",
            f"{text}",
            "\n".join(["| package | for | licence |", "|---|---|---|", *rows]),
        ]
    direct = {name for names in found.values() for name in names}
    rows = [f"| {name} | {licence(name)} |" for name in locked() if name not in direct]
    parts += ["## What these bring along", "\n".join(["| package | licence |", "|---|---|", *rows])]
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
