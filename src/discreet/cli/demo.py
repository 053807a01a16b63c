"""``discreet demo``: all steps from a synthetic census to a verified release."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import JSON, QUIET, THREADS, emit_json, say, shown_progress
from discreet.errors import BrokenRelease, Mistakes, mistake
from discreet.io.ending import putting
from discreet.io.register import Register
from discreet.io.secret import make_secret, read_secret
from discreet.pipeline.check import check_data
from discreet.pipeline.protect import protect
from discreet.programme.codelist import TOTAL
from discreet.programme.programme import load_programme
from discreet.release.reader import PublishedCodes, open_release
from discreet.release.verify import verify
from discreet.synth.generate import DEMO_TABLES, check, generate
from discreet.synth.geography import FICTIONAL

SHOWN = "3.1"
_OURS = "discreet-demo"


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="The folder to create; an earlier demo there is replaced.")
    ] = Path("demo"),
    persons: Annotated[int, typer.Option("--persons", help="Number of persons.")] = 200_000,
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Make a small synthetic census, protect five groups of EU tables, verify the release and show a table."""
    check(persons, 1, None, DEMO_TABLES, FICTIONAL, threads)  # an earlier demo stays if this one is refused
    _make_room(out)
    quiet = quiet or json
    census, secret, release = out / "census", out / "secret.key", out / "release"
    with _timed("synthetic census", census, quiet):
        generate(persons, 1, census, tables=DEMO_TABLES, threads=threads)
    with _timed("secret", secret, quiet):
        make_secret(secret)
    programme = load_programme(census / "programme.toml")
    with _timed("check", programme.path, quiet), shown_progress(quiet) as progress:
        problems = check_data(programme, threads, progress)
    if problems:
        raise Mistakes(problems)
    private = out / "secret.key.release.json"
    with _timed(f"protect, {len(programme.cubes)} tables", release, quiet), shown_progress(quiet) as progress:
        key = read_secret(str(secret.absolute()), {})  # "env:X/secret.key" would be a variable
        protect(
            programme,
            key,
            release,
            private,
            clock=lambda: datetime.now(UTC),
            threads=threads,
            progress=progress,
            register=Register.of(out / "secret.key.register", key),
        )
    with _timed("verify", release, quiet):
        outcome = verify(release)
    if not outcome.passed:
        raise BrokenRelease("\n".join(outcome.problems))
    if json:
        emit_json(
            {
                "release": str(release),
                "passed": outcome.passed,
                "cubes": outcome.cubes,
                "cells": outcome.cells,
            }
        )
    elif not quiet:
        say(
            f"\n{outcome.cells:,} cells; {outcome.compared:,} occur in several tables and agree everywhere.\n"
        )
        say("\n".join(_excerpt(release)))
        say(f"\nLook at it in a browser:\n  discreet serve {programme.path} --secret {secret}")


def _make_room(out: Path) -> None:
    if out.exists() and any(out.iterdir()):
        if not (out / _OURS).exists():
            raise mistake(out, "--out", "the folder contains something else", "give another folder")
        with putting(str(out)):
            shutil.rmtree(out)
    with putting(str(out)):
        out.mkdir(parents=True, exist_ok=True)
        (out / _OURS).touch()


@contextmanager
def _timed(step: str, place: Path, quiet: bool) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    if not quiet:
        say(f"{time.perf_counter() - begun:6.1f} s  {step:24} {place}")


def _excerpt(folder: Path) -> Iterator[str]:
    """The coarsest level with several areas, by sex, and why their sum is not their total."""
    release = open_release(folder)
    cells = {
        (r["GEO"], r["SEX"]): r["value"] for r in release.read_cube(SHOWN).to_pylist() if r["AGE"] == TOTAL
    }
    places = release.read_codes("GEO.H")
    labels = {**dict(zip(places.codes, places.labels, strict=True)), TOTAL: "Total"}
    areas = _several(places)
    yield f"Table {SHOWN}, published counts:"
    yield f"{'':16}{'total':>12}{'men':>12}{'women':>12}"
    for code in (TOTAL, *areas):
        row = (cells.get((code, sex), 0) for sex in (TOTAL, "1", "2"))
        yield f"{labels[code]:16}" + "".join(f"{value:>12,}" for value in row)
    gap = cells.get((TOTAL, TOTAL), 0) - sum(cells.get((code, TOTAL), 0) for code in areas)
    yield f"Every count has its own noise, so the sum of the areas differs from their total by {abs(gap)}."


def _several(places: PublishedCodes) -> list[str]:
    """The codes of the coarsest level that has at least three; of the finest where none has."""
    level = {TOTAL}
    while len(level) < 3:
        below = {code for code, parent in zip(places.codes, places.parents, strict=True) if parent in level}
        if not below:
            break
        level = below
    return sorted(level)
