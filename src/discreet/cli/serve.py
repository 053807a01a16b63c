"""``discreet serve``: serve a table builder over a programme or a release."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import (
    ANOTHER_PTABLE,
    JSON,
    QUIET,
    REGISTER,
    THREADS,
    emit_json,
    register_path,
    say,
    say_note,
    shown_progress,
)
from discreet.errors import mistake
from discreet.io.secret import read_secret
from discreet.serve.catalogue import UNLIMITED
from discreet.serve.http.server import Serving, run
from discreet.serve.http.settings import Limits, RateLimit


def serve(
    source: Annotated[Path, typer.Argument(help="A programme file, or a release folder.")],
    secret: Annotated[
        str, typer.Option("--secret", help="The secret of the programme: a file, env:NAME or fd:NUMBER.")
    ] = "",
    store: Annotated[
        str,
        typer.Option("--store", help="Saved queries, jobs and histories: a SQLite file or postgresql://.."),
    ] = "serve.sqlite",
    ledger: Annotated[
        str, typer.Option("--ledger", help="The ledger of budgets, where the noise has a guarantee.")
    ] = "",
    register: REGISTER = None,
    another_ptable: ANOTHER_PTABLE = False,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="For a release: a programme whose [serve] section applies.")
    ] = None,
    without_rules: Annotated[
        bool, typer.Option("--without-rules", help="Let users collect without limit; not for the public.")
    ] = False,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", help="A file of API tokens (discreet token).")
    ] = None,
    tokens_only: Annotated[
        bool, typer.Option("--tokens-only", help="Require an API token for every table.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 uses a free port.")] = 8000,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="Processes; each loads the records.")
    ] = 1,
    proxies: Annotated[
        str, typer.Option("--proxies", help="Addresses of proxies whose X-Forwarded-For is trusted.")
    ] = "",
    hosts: Annotated[
        str,
        typer.Option(
            "--hosts",
            help="Names under which the server may be addressed, separated by commas; others are refused.",
        ),
    ] = "",
    origins: Annotated[
        str,
        typer.Option(
            "--origins",
            help="Origins of other pages that may read answers (CORS), separated by commas; * for all.",
        ),
    ] = "*",
    rate: Annotated[
        str,
        typer.Option(
            "--rate", help="Requests/seconds of a public user; trusted users have ten times as many."
        ),
    ] = "100/10",
    waiting: Annotated[
        int, typer.Option("--waiting", min=0, help="Tables that may wait; more are rejected with 503.")
    ] = 64,
    time_limit: Annotated[
        float, typer.Option("--time-limit", min=0.1, help="Seconds that an answer may take.")
    ] = 60.0,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            help="Language of the labels, and of messages where a request names none; otherwise that of the release.",
        ),
    ] = None,
    geometry: Annotated[
        Path | None, typer.Option("--geometry", help="GeoJSON of the areas, for maps on the page.")
    ] = None,
    log_queries: Annotated[
        bool, typer.Option("--log-queries", help="Log full queries, not only the route.")
    ] = False,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Serve protected tables: any cross of breakdowns, under the rules of the programme."""
    if not source.exists():
        raise mistake(source, "", "no such file or folder", "give a programme file or a release folder")
    serving = Serving(
        source=source,
        store=store,
        secret=read_secret(secret, os.environ) if secret else None,
        ledger=ledger,
        register=register_path(register, secret),
        another_ptable=another_ptable,
        rules=rules,
        without_rules=without_rules,
        tokens=tokens,
        tokens_only=tokens_only,
        threads=threads,
        limits=_limits(rate, waiting, time_limit, threads),
        origins=_listed(origins),
        language=language,
        log_queries=log_queries,
        geometry=geometry,
        hosts=_listed(hosts),
    )

    def ready(address: str, is_unlimited: bool) -> None:
        if json:
            emit_json({"address": address, "unlimited": is_unlimited})
        elif not quiet:
            say(f"Serving {source} on {address} (Ctrl-C stops it).")
        if is_unlimited:
            say_note(f"warning: {UNLIMITED}")

    with shown_progress(quiet or json) as progress:
        run(
            serving,
            host,
            port,
            workers=workers,
            proxies=_proxies(proxies),
            ready=ready,
            progress=progress,
        )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _proxies(text: str) -> str:
    """The addresses of proxies; with * every client would be a proxy, and could state any address."""
    for part in _listed(text):
        try:
            network = ip_network(part)
        except ValueError:
            raise mistake(
                "", "--proxies", part, "name addresses or networks, such as 10.0.0.7,10.1.0.0/24"
            ) from None
        if network.prefixlen == 0:
            raise mistake(
                "", "--proxies", part, "name the addresses of your proxies: this means every client"
            )
    return text


def _limits(rate: str, waiting: int, time_limit: float, threads: int) -> Limits:
    calls, _, seconds = rate.partition("/")
    if not (calls.isdecimal() and seconds.isdecimal() and int(calls) and int(seconds)):
        raise mistake("", "--rate", rate, "write requests/seconds, such as 100/10")
    public = RateLimit(int(calls), int(seconds))
    limits = Limits(public=public, trusted=RateLimit(10 * public.calls, public.seconds))
    return replace(limits, waiting=waiting, seconds=time_limit, running=threads)
