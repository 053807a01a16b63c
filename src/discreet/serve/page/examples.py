"""A table as code for other programs: a shell, Python, R, and clients of PxWeb and SDMX. It runs as it is pasted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote

from discreet.formats.sdmx_ids import code_ids, component_id, dataflow_id
from discreet.serve.catalogue import Catalogue, ServedTable
from discreet.serve.query import Query, to_json

LONGEST = 4_000  # characters of an address that every program takes
TOKEN = "TABLE_BUILDER_TOKEN"  # noqa: S105 - of the environment: a token itself is in no example
FEW = 60  # codes of a variable that an example selects


@dataclass(frozen=True)
class Example:
    """Code that gets a table."""

    name: str  # curl, Python, R, pxwebpy, ...
    text: str


def own_examples(query: Query, address: str, with_token: bool) -> tuple[Example, ...]:
    """The table by the server's own API: in one line where the question fits into an address."""
    body = json.dumps(to_json(query), ensure_ascii=False, separators=(",", ":"))
    table = f"{address}api/v1/table?format=csv"
    whole = f"{table}&query={quote(body, safe='')}"
    if len(whole) <= LONGEST:
        return _short(whole, with_token)
    return _long(table, body, with_token)


def _short(address: str, with_token: bool) -> tuple[Example, ...]:
    header = (
        f'\n    storage_options={{"Authorization": "Bearer " + os.environ["{TOKEN}"]}},' if with_token else ""
    )
    source = (
        f'url("{address}",\n  headers = c(Authorization = paste("Bearer", Sys.getenv("{TOKEN}"))))'
        if with_token
        else f'"{address}"'
    )
    return (
        Example("curl", f"curl -o table.csv {_shell_token(with_token)}'{address}'"),
        Example(
            "Python",
            f"{'import os' + chr(10) if with_token else ''}import pandas as pd\n\n"
            f'table = pd.read_csv(\n    "{address}",\n    dtype=str,{header}\n)\n'
            'table["value"] = pd.to_numeric(table["value"]).astype("Int64")',
        ),
        Example("R", f'source <- {source}\ntable <- read.csv(source, colClasses = "character")\n{_R_VALUE}'),
    )


def _long(address: str, body: str, with_token: bool) -> tuple[Example, ...]:
    text = json.dumps(body)  # a string that Python and R read alike
    header = f', "Authorization": "Bearer " + os.environ["{TOKEN}"]' if with_token else ""
    bearer = f'\n  req_auth_bearer_token(Sys.getenv("{TOKEN}")) |>' if with_token else ""
    shell = body.replace("'", "'\\''")
    return (
        Example(
            "curl",
            f"curl -o table.csv -H 'Content-Type: application/json' {_shell_token(with_token)}'{address}' \\\n"
            f"  --data '{shell}'",
        ),
        Example(
            "Python",
            f"{'import os' + chr(10) if with_token else ''}from urllib.request import Request, urlopen\n\n"
            f"import pandas as pd\n\nquery = {text}\n"
            f'headers = {{"Content-Type": "application/json"{header}}}\n'
            f'answer = urlopen(Request("{address}", query.encode(), headers))\n'
            "table = pd.read_csv(answer, dtype=str)\n"
            'table["value"] = pd.to_numeric(table["value"]).astype("Int64")',
        ),
        Example(
            "R",
            f'library(httr2)\n\nanswer <- request("{address}") |>{bearer}\n'
            f'  req_body_raw({text}, "application/json") |>\n  req_perform()\n'
            f'table <- read.csv(text = resp_body_string(answer), colClasses = "character")\n{_R_VALUE}',
        ),
    )


_R_VALUE = "table$value <- as.integer(table$value)"


def _shell_token(with_token: bool) -> str:
    return f'-H "Authorization: Bearer ${TOKEN}" ' if with_token else ""


def table_examples(query: Query, catalogue: Catalogue, address: str) -> tuple[Example, ...]:
    """A declared table, the one that is nearest to a question, for clients of PxWeb and SDMX; none where none is."""
    table = _nearest(query, catalogue)
    if table is None:
        return ()
    picked = _picked(query, table, catalogue)
    python = ", ".join(f'"{name}": {json.dumps(codes)}' for name, codes in picked.items())
    r = ", ".join(
        f"{name} = {json.dumps(codes[0]) if len(codes) == 1 else f'c({json.dumps(codes)[1:-1]})'}"
        for name, codes in picked.items()
    )
    key = json.dumps(_sdmx_key(picked, table, catalogue))
    flow = dataflow_id(table.id)
    agency = catalogue.agency
    return (
        Example(
            "pxwebpy",
            f'from pxweb import PxApi\n\napi = PxApi("{address}api/v2")\n'
            f'rows = api.get_table_data("{table.id}", {{{python}}}, show="code")',
        ),
        Example(
            "R pxweb",
            f'library(pxweb)\n\nurl <- "{address}pxweb/api/v1/en/{catalogue.name}/{table.id}"\n'
            f"answer <- pxweb_get_data(url, list({r}))",
        ),
        Example(
            "sdmx1",
            "import sdmx\nfrom sdmx.source import Source\n\nclient = sdmx.Client()\n"
            f'client.source = Source("{agency}", "{address}sdmx", "Census")\n'
            f'counts = sdmx.to_pandas(client.data("{flow}", key={key}))',
        ),
        Example(
            "R rsdmx",
            f'library(rsdmx)\n\ncounts <- as.data.frame(readSDMX("{address}sdmx/data/{flow}/all/all/"))',
        ),
    )


def _sdmx_key(picked: dict[str, list[str]], table: ServedTable, catalogue: Catalogue) -> dict[str, list[str]]:
    """The codes as SDMX spells them; variables with all codes are left out."""
    found = {}
    for name in table.axes:
        axis = catalogue.breakdown(name)
        if axis is not None and picked.get(axis.variable, ["*"]) != ["*"]:
            ids = dict(zip(axis.codes, code_ids(axis.codes), strict=True))
            found[component_id(axis.variable)] = [ids[code] for code in picked[axis.variable]]
    return found


def _nearest(query: Query, catalogue: Catalogue) -> ServedTable | None:
    """The smallest declared table with the variables of a question, else the first that has axes."""
    asked = {axis.variable for axis in query.axes}
    tables = [one for one in catalogue.tables if one.axes]
    same = [
        one
        for one in tables
        if one.unit == query.unit and not one.base and asked <= {axis.partition(".")[0] for axis in one.axes}
    ]
    return min(same, key=lambda one: len(one.axes), default=tables[0] if tables else None)


def _picked(query: Query, table: ServedTable, catalogue: Catalogue) -> dict[str, list[str]]:
    """Variable -> codes of the table: those of the question, all of a short variable, else the total."""
    asked = {axis.variable: axis for axis in query.axes}
    found = {}
    for name in table.axes:
        axis = catalogue.breakdown(name)
        if axis is None:
            continue
        given = asked.get(axis.variable)
        codes = [code for code in (given.codes if given else ()) if code in axis.codes]
        if given is not None or not asked:
            found[axis.variable] = codes or (["*"] if len(axis.codes) <= FEW else [axis.codes[0]])
    return found or {table.axes[0].partition(".")[0]: ["*"]}
