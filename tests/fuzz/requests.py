"""Requests to the table builder, in this process: JSON bodies, addresses of SDMX and PxWeb, parameters and headers."""

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from httpx import ASGITransport, AsyncClient, InvalidURL, Response

from discreet.io.secret import read_secret
from discreet.serve.http.server import Serving
from discreet.serve.http.settings import Limits, RateLimit
from tests.fuzz.damage import VALUES, damaged, rearranged

OFTEN = RateLimit(10_000_000, 1)
QUERY = {"axes": ["SEX", {"breakdown": "LAU.H", "codes": ["_T", "A1"]}], "where": 'SEX == "F"'}
LAYOUT = {"columns": ["SEX"], "texts": "both", "percent": "row", "counts": True}
BODIES: tuple[tuple[str, object], ...] = (  # sound requests with a JSON body to a server of the release
    ("/api/v1/table", {"axes": ["SEX", "LAU.H"]}),
    ("/api/v1/table", QUERY | {"where": ""}),
    ("/api/v1/table?format=csv", {"axes": ["LAU.L"], "where": 'SEX in ("F")'}),
    ("/api/v1/preview?nearest=true", {"unit": "persons", "axes": ["SEX"], "count": ""}),
    ("/api/v1/noise-ranges", {"query": {"axes": ["SEX"]}, "cells": [0, 1], "level": 0.9}),
    (
        "/api/v1/noise-ranges",
        {"query": {"axes": ["SEX"]}, "cells": [0, 1], "compared": {"kind": "ratio", "with": [1, 0]}},
    ),
    ("/api/v1/queries", {"query": {"axes": ["SEX"]}, "extra": {"title": "t"}}),
    ("/api/v1/jobs", {"query": {"axes": ["SEX", "LAU.H"]}, "format": "csv", "layout": LAYOUT}),
    ("/api/v1/files", {"query": {"axes": ["SEX", "LAU.H"]}, "format": "xlsx", "layout": LAYOUT}),
    (
        "/api/v1/files",
        {
            "query": {"axes": ["SEX", "LAU.H"]},
            "layout": {
                "columns": ["SEX"],
                "lines": [1, 0],
                "fields": [0],
                "compare": {"kind": "difference", "variable": "SEX", "code": "F"},
            },
        },
    ),
    (
        "/api/v2/tables/1/data?outputFormat=csv",
        {
            "selection": [{"variableCode": "SEX", "valueCodes": ["F", "*"], "codelist": "vs_SEX"}],
            "placement": {"heading": ["SEX"], "stub": ["ContentsCode"]},
        },
    ),
    ("/api/v2/savedqueries", {"id": "", "tableId": "1", "selection": {"selection": []}, "language": "en"}),
    (
        "/pxweb/api/v1/en/fuzz/1",
        {
            "query": [{"code": "SEX", "selection": {"filter": "item", "values": ["F"]}}],
            "response": {"format": "px"},
        },
    ),
    ("/page/examples", {"axes": ["SEX"]}),
)
RECORDS: tuple[tuple[str, object], ...] = (  # to a server of records
    ("/api/v1/table", {"axes": ["SEX", "GEO.H"], "where": 'AGE == "adult" and not (SEX == "9")'}),
    ("/api/v1/table", {"axes": [{"breakdown": "GEO", "groups": {"both": ["N1", "S1"]}}, "AGE"]}),
    ("/api/v1/table?format=px", {"unit": "households", "axes": ["TENURE", "GEO.L"]}),
    ("/api/v1/table", {"axes": ["SEX"], "count": "works"}),
    ("/api/v1/preview", {"axes": ["SEX", "AGE"], "where": 'GEO.L == "N" or SEX in ("1", "2")'}),
    ("/api/v1/jobs", {"query": {"axes": ["SEX", "AGE", "GEO.H"]}, "format": "xlsx"}),
)
ADDRESSES = (
    "/sdmx/data/DF_1/F.A1?detail=full",
    "/sdmx/data/FUZZ,DF_1,1.0/all?dimensionAtObservation=SEX&firstNObservations=1",
    "/sdmx/dataflow/all/all/latest?references=all&detail=allstubs",
    "/sdmx/data/dataflow/FUZZ/DF_1/1.0/F.*?c[LAU]=A1,A2&c[SEX]=ne:M",
    "/sdmx/structure/codelist/FUZZ/CL_SEX/+",
    "/sdmx/schema/dataflow/FUZZ/DF_1/1.0",
    "/sdmx/availableconstraint/DF_1/F./all/SEX?mode=available",
    "/sdmx/availability/dataflow/FUZZ/DF_1/1.0/F.*/SEX",
    '/api/v1/table?query={"axes":["SEX","LAU.H"]}&format=csv&columns=SEX&texts=codes&percent=row',
    '/api/v1/table?query={"axes":["SEX"]}&format=csv&compare=ratio&base=SEX:F&ranges=true',
    '/api/v1/preview?query={"axes":["SEX"]}&lang=de',
    "/api/v1/breakdowns/LAU.H",
    "/api/v1/variables/SEX",
    "/api/v1/search?text=female&unit=persons",
    "/api/v1/catalogue?lang=de-AT",
    "/api/v2/tables/1/data?valueCodes[SEX]=F,TOP(1)&outputFormat=csv&outputFormatParams=UseCodes",
    "/api/v2/tables/1/data?valueCodes[LAU]=RANGE(A1,B1)&heading=LAU&stub=ContentsCode",
    "/api/v2/tables/1/metadata?lang=en",
    "/api/v2/tables?query=1&pageNumber=1&pageSize=5&pastDays=3",
    "/api/v2/codelists/vs_LAU.L",
    "/api/v2/tables/1/defaultselection",
    "/pxweb/api/v1/en/fuzz/1?config",
    "/pxweb/api/v1/en/fuzz?query=persons",
    "/?axes=SEX&lang=fr",
    "/page/settings?lang=de",
    "/health",
)
HEADERS = {
    "accept": (
        "application/vnd.sdmx.data+json;version=2.0.0",
        "application/vnd.sdmx.data+xml;version=3.0.0",
        "application/vnd.sdmx.data+csv;version=1.0.0;labels=both",
        "application/vnd.sdmx.structure+json;version=2.0.0",
        "text/html",
        "*/*;q=x",
    ),
    "accept-language": ("de;q=0.5,fr", "*", "de;q=nan", "x" * 500),
    "if-none-match": ("*", 'W/"x"', '"'),
    "authorization": ("Bearer dsc_x", "Bearer", "Basic eDp4", "Bearer \xe9"),
    "content-type": ("text/plain", "application/json; charset=latin-1", "multipart/form-data"),
    "accept-encoding": ("gzip;q=0", "br", "x" * 300),
    "range": ("bytes=0-1",),
    "host": ("", "a b", "[::1"),
    "x-forwarded-for": ("::1", "x, y"),
}


class Client:
    """The application over a release or records, without a socket; what it does not catch is raised."""

    def __init__(self, runner: asyncio.Runner, client: AsyncClient) -> None:
        self._runner, self._client = runner, client

    def send(self, method: str, address: str, **given: Any) -> Response:
        """One request, and its answer."""
        return self._runner.run(self._client.request(method, address, **given))


@contextmanager
def server(source: Path, store: Path) -> Iterator[Client]:
    """Open the application over a release, or over the programme of a folder with its secret, and close it."""
    limits = Limits(public=OFTEN, work=OFTEN, storing=OFTEN, jobs=10_000_000)
    if source.is_dir():
        serving = Serving(source=source, store=str(store), limits=limits)
    else:
        secret = source.with_name("secret.key")
        serving = Serving(
            source=source,
            store=str(store),
            secret=read_secret(str(secret), {}),
            register=store.with_name("register"),
            without_rules=True,
            limits=limits,
        )
    app = serving.app()
    with asyncio.Runner() as runner:
        living = app.router.lifespan_context(app)
        runner.run(living.__aenter__())
        try:
            yield Client(runner, AsyncClient(transport=ASGITransport(app), base_url="http://builder"))
        finally:
            runner.run(living.__aexit__(None, None, None))


def request(released: Client, records: Client, dice: random.Random) -> tuple[str, int, str]:
    """Send a damaged request; its text, and the status and the content of the answer."""
    headers = {}
    if dice.random() < 0.2:
        name = dice.choice(list(HEADERS))
        headers[name] = dice.choice(HEADERS[name])
    if dice.random() < 0.6:
        client, bodies = dice.choice(((released, BODIES), (released, BODIES), (records, RECORDS)))
        address, body = dice.choice(bodies)
        content = json.dumps(rearranged(body, dice)).encode()
        if dice.random() < 0.25:
            content = damaged(content, dice)
        headers = {"content-type": "application/json", **headers}
        method = dice.choices(("POST", "PUT", "DELETE"), (98, 1, 1))[0]
        return _sent(client, method, address, headers, content)
    address = dice.choice(ADDRESSES)
    parts = [part for part in address.replace("?", "/").replace("&", "/").split("/") if part]
    wrong = quote(dice.choice(VALUES), safe="*+,:", errors="surrogateescape")
    address = address.replace(dice.choice(parts).rpartition("=")[2] or "x", wrong, 1)
    if dice.random() < 0.2:
        address = quote(damaged(address.encode(), dice), safe="/?&=[]*,.:%")
    method = dice.choices(("GET", "HEAD", "OPTIONS", "POST"), (94, 3, 1, 2))[0]
    return _sent(released, method, f"/{address.lstrip('/')}", headers, b"")


def _sent(
    client: Client, method: str, address: str, headers: dict[str, str], content: bytes
) -> tuple[str, int, str]:
    text = f"{method} {address[:500]} {headers} {content[:500]!r}"
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    try:
        answer = client.send(method, address, content=content, headers=raw)
    except InvalidURL:
        return text, 0, ""
    return text, answer.status_code, answer.content.decode("latin-1")
