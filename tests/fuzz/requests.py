"""Requests to the table builder, in this process: JSON bodies, addresses of SDMX and PxWeb, parameters of queries."""

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from httpx import ASGITransport, AsyncClient, InvalidURL, Response

from discreet.serve.http.limits import Limits, RateLimit
from discreet.serve.http.server import Serving
from tests.fuzz.damage import VALUES, changed, damaged

OFTEN = RateLimit(10_000_000, 1)
BODIES = (  # sound requests with a JSON body
    ("/api/v1/table", {"axes": ["SEX", "LAU.H"], "filters": {"SEX": ["F"]}}),
    ("/api/v1/table?format=csv", {"axes": ["LAU.L"], "groups": {"LAU": {"x": ["A", "B"]}}}),
    ("/api/v1/preview", {"axes": ["SEX"], "filters": {"LAU": ["A1"]}, "count": ""}),
    ("/api/v1/noise-ranges", {"query": {"axes": ["SEX"]}, "cells": [0, 1], "level": 0.9}),
    ("/api/v1/queries", {"query": {"axes": ["SEX"]}, "title": "t"}),
    ("/api/v1/jobs", {"query": {"axes": ["SEX"]}, "format": "csv"}),
    ("/api/v2/tables/1/data", {"selection": [{"variableCode": "SEX", "valueCodes": ["F", "*"]}]}),
    (
        "/api/v1/en/fuzz/1",
        {
            "query": [{"code": "SEX", "selection": {"filter": "item", "values": ["F"]}}],
            "response": {"format": "px"},
        },
    ),
)
ADDRESSES = (
    "/sdmx/2.1/data/1/F.A1?detail=full",
    "/sdmx/2.1/dataflow/all/all/latest?references=all",
    "/sdmx/3.0/data/dataflow/*/1/*/F.*?c[SEX]=F",
    "/sdmx/2.1/codelist/DISCREET/CL_SEX/1.0",
    "/api/v1/table?axes=SEX,LAU.H&filters=SEX:F&format=csv",
    "/api/v1/preview?axes=SEX&lang=de",
    "/api/v1/breakdowns/LAU.H",
    "/api/v1/variables/SEX",
    "/api/v2/tables/1/data?valuecodes[SEX]=F&outputformat=csv",
    "/api/v2/tables/1/metadata?lang=en",
    "/api/v2/tables?query=1&pageNumber=1&pageSize=5",
    "/api/v2/codelists/LAU.H",
    "/api/v1/en/fuzz/1",
    "/q/none",
    "/?axes=SEX&lang=fr",
)


class Client:
    """The application over a release, without a socket; what it does not catch is raised."""

    def __init__(self, runner: asyncio.Runner, client: AsyncClient) -> None:
        self._runner, self._client = runner, client

    def send(self, method: str, address: str, **given: Any) -> Response:
        """One request, and its answer."""
        return self._runner.run(self._client.request(method, address, **given))


@contextmanager
def server(release: Path, store: Path) -> Iterator[Client]:
    """Open the application, and close it."""
    serving = Serving(source=release, store=str(store), limits=Limits(public=OFTEN, trusted=OFTEN))
    app = serving.app()
    with asyncio.Runner() as runner:
        living = app.router.lifespan_context(app)
        runner.run(living.__aenter__())
        yield Client(runner, AsyncClient(transport=ASGITransport(app), base_url="http://builder"))
        runner.run(living.__aexit__(None, None, None))


def request(client: Client, dice: random.Random) -> tuple[str, int]:
    """Send a damaged request; its text and the status of the answer."""
    if dice.random() < 0.6:
        address, body = dice.choice(BODIES)
        tree: object = body
        for _ in range(dice.choice((1, 1, 2, 3))):
            tree = changed(tree, dice)
        content = json.dumps(tree).encode()
        if dice.random() < 0.25:
            content = damaged(content, dice)
        answer = client.send("POST", address, content=content, headers={"content-type": "application/json"})
        return f"POST {address} {content[:500]!r}", answer.status_code
    address = dice.choice(ADDRESSES)
    parts = [part for part in address.replace("?", "/").replace("&", "/").split("/") if part]
    wrong = quote(dice.choice(VALUES), safe="*+,:", errors="surrogateescape")
    address = address.replace(dice.choice(parts).rpartition("=")[2] or "x", wrong, 1)
    if dice.random() < 0.2:
        address = quote(damaged(address.encode(), dice), safe="/?&=[]*,.:%")
    try:
        return f"GET {address[:500]}", client.send("GET", f"/{address.lstrip('/')}").status_code
    except InvalidURL:
        return address, 0
