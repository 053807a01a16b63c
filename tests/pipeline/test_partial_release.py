"""Releases of some cross-tabulations: every format, verification, audit, attacks, table builder and inference."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit.attack import Outsider, attack
from discreet.audit.case import open_case
from discreet.audit.evidence import published
from discreet.errors import Mistakes
from discreet.inference import cross_table, noise_of
from discreet.inference.weighted import weighted
from discreet.io.progress import Quiet
from discreet.io.register import Register
from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours
from discreet.perturb.ledger import Ledger
from discreet.pipeline.audit import audit
from discreet.pipeline.protect import protect
from discreet.pipeline.spending import Spending
from discreet.programme.cube import crossed
from discreet.programme.programme import Programme, load_programme
from discreet.release.manifest import Manifest
from discreet.release.reader import Release, open_release
from discreet.release.verify import verify
from discreet.serve.answer import Answer, Refusal, Rule
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme, serve_release
from discreet.serve.query import Axis, Query
from discreet.synth import generate
from tests.cases import few
from tests.pipeline.conftest import NOON, SECRET, with_cubes

AXES = {"ages": '["GEO.M", "SEX", "AGE.L"]', "places": '["GEO.L", "SEX", "LOC"]'}
FORMATS = '[release]\nname = "town"\nformats = ["parquet", "csv", "sdmx-csv", "json-stat", "xlsx", "px"]\n'
INTERIOR = 'kind = "geometric"\nepsilon = 2\nsplit = { margins = "none" }\n'
SUMS = 'kind = "geometric"\nepsilon = 2\nnegatives = "keep"\nsplit = { margins = "none", sums = true }\n'
LEVELS = (
    'kind = "geometric"\nepsilon = 20\npublic_totals = { persons = 2400 }\n'
    'split = { by_level = { "GEO:0" = "1/2", "GEO:1" = "0", "GEO:2" = "1/4", "GEO:3" = "1/4" } }\n'
)
BOUNDED = 'kind = "laplace"\nepsilon = 9\nbound = 9\ndelta = 0.001\nlarge_delta = true\nsplit = { margins = "none" }\n'
KINDS = {"interior": INTERIOR, "sums": SUMS, "levels": LEVELS, "bounded": BOUNDED}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town") / "town"
    generate(2400, 3, folder, tables=["1.1"], country="MT", threads=1)
    return folder


def declared(town: Path, folder: Path, noise: str, more: str = "") -> Programme:
    shutil.copytree(town, folder, dirs_exist_ok=True)
    text = with_cubes((town / "programme.toml").read_text(), AXES)
    (folder / "programme.toml").write_text(f"{text}{more}[noise]\nallow_weak = true\n{noise}{FORMATS}")
    return load_programme(folder / "programme.toml")


@pytest.fixture(scope="module")
def programmes(town: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Programme]:
    folder = tmp_path_factory.mktemp("programmes")
    return {name: declared(town, folder / name, noise) for name, noise in KINDS.items()}


@pytest.fixture(scope="module")
def releases(
    programmes: dict[str, Programme], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Release]:
    folder = tmp_path_factory.mktemp("releases")
    for name, programme in programmes.items():
        protect(programme, SECRET, folder / name, folder / f"{name}.json", clock=lambda: NOON)
    return {name: open_release(folder / name) for name in programmes}


def listed(release: Release, cube: str) -> Iterator[tuple[dict[str, str], int]]:
    entry = release.cube(cube)
    for row in release.read_cube(cube).to_pylist():
        yield {axis.variable: row[axis.variable] for axis in entry.axes}, row["value"]


def name_of(release: Release, cube: str, codes: dict[str, str]) -> str:
    levels = []
    for axis in release.cube(cube).axes:
        known = release.read_codes(axis.breakdown)
        above, code, depth = dict(zip(known.codes, known.parents, strict=True)), codes[axis.variable], 0
        while code != "_T":
            depth, code = depth + 1, above[code]
        levels += [(axis.variable, depth)] if depth else []
    return crossed(tuple(sorted(levels)))


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_the_manifest_names_is_in_the_files(releases: dict[str, Release], kind: str) -> None:
    release = releases[kind]
    for entry in release.manifest.cubes:
        assert entry.published is not None
        found = {name_of(release, entry.id, codes) for codes, _ in listed(release, entry.id)}
        assert found <= set(entry.published)
        assert len(found) > len(entry.published) / 2
    outcome = verify(release.folder)
    assert outcome.passed, outcome.problems
    assert outcome.partial == 2
    assert "not zero" in (release.folder / "README.md").read_text()


def test_formats_that_list_every_cell_leave_the_others_empty(releases: dict[str, Release]) -> None:
    release = releases["interior"]
    entry = release.cube("ages")
    sizes = [axis.codes for axis in entry.axes]
    px = (release.folder / "px/ages.px").read_text()
    cells = px.partition("DATA=\n")[2].replace(";", "").split()
    assert len(cells) == np.prod(sizes)
    known = [release.read_codes(axis.breakdown).codes for axis in entry.axes]
    for at, shown in enumerate(cells):
        nodes = np.unravel_index(at, sizes)
        codes = {axis.variable: known[k][nodes[k]] for k, axis in enumerate(entry.axes)}
        assert (shown == '"."') == (name_of(release, "ages", codes) not in (entry.published or ()))
    assert 'DATASYMBOL1="not published"' in px
    content = json.loads((release.folder / "json-stat/ages.json").read_text())
    assert json.loads(content["extension"]["published"]) == list(entry.published or ())
    assert any("not zero" in note for note in content["note"])


def test_sums_are_stated_with_their_variance_and_a_wrong_one_is_found(
    releases: dict[str, Release], tmp_path: Path
) -> None:
    release = releases["sums"]
    stated = release.manifest.noise.sums or {}
    one = release.manifest.noise.variance or 0
    assert stated["persons///GEO:3 x SEX:1"].cells == 6, "broad age groups"
    assert all(found.variance == pytest.approx(found.cells * one) for found in stated.values())
    for entry in release.manifest.cubes:
        total = sum(
            value
            for codes, value in listed(release, entry.id)
            if name_of(release, entry.id, codes) not in (entry.sums or ())
        )
        shown = [value for codes, value in listed(release, entry.id) if set(codes.values()) == {"_T"}]
        assert shown == ([total] if "total" in (entry.sums or ()) else [])
    shutil.copytree(release.folder, tmp_path / "r")
    _change(tmp_path / "r", "ages", lambda values: np.where(np.arange(len(values)) == 0, values + 1, values))
    assert verify(tmp_path / "r").problems == (
        "cube ages: a stated sum is not the sum of its finest published cells",
    )


def test_sums_of_a_release_without_cells_are_verified(tmp_path: Path) -> None:
    for name in ("SEX", "EDU"):
        (tmp_path / f"{name}.csv").write_text("code,parent,label\n1,,one\n2,,two\n")
    (tmp_path / "counts.csv").write_text("SEX,EDU,count\n" + "".join(f"{k},1,0\n" for k in (1, 2)))
    variables = "".join(f'[variables.{name}]\ncodelist = "{name}.csv"\n' for name in ("SEX", "EDU"))
    cube = '[[cubes]]\nid = "1"\naxes = ["SEX", "EDU"]\ncounts = { file = "counts.csv", count = "count" }\n'
    noise = (
        '[noise]\nkind = "geometric"\nepsilon = 50\nallow_weak = true\nclaim = "none"\nnegatives = "keep"\n'
    )
    split = 'split = { margins = "none", sums = true }\n'
    (tmp_path / "p.toml").write_text(variables + cube + noise + split)
    protect(
        load_programme(tmp_path / "p.toml"), SECRET, tmp_path / "r", tmp_path / "r.json", clock=lambda: NOON
    )
    assert open_release(tmp_path / "r").manifest.cubes[0].cells == 0
    assert verify(tmp_path / "r").problems == ()


def test_codes_that_do_not_follow_those_above_them_are_found_before_sums_are_compared(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AXES, "ages", '["AGE.M", "SEX"]')
    folder = tmp_path / "r"
    programme = declared(town, tmp_path / "town", SUMS)
    protect(programme, SECRET, folder, tmp_path / "r.json", clock=lambda: NOON)
    assert verify(folder).problems == ()
    head, total, *lines = (folder / "codelists/AGE.M.csv").read_text().splitlines(keepends=True)
    lines.sort(key=lambda line: line.split(",")[1] != "_T")  # level by level
    (folder / "codelists/AGE.M.csv").write_text("".join((head, total, *lines)))
    place = {line.split(",")[0]: row for row, line in enumerate((total, *lines))}
    table = pq.read_table(folder / "parquet/ages.parquet")
    order = np.argsort([place[code] for code in table["AGE"].to_pylist()], kind="stable")
    pq.write_table(table.take(pa.array(order)), folder / "parquet/ages.parquet")
    _restate(folder)
    problems = verify(folder).problems
    assert "codelists: the codes below a code do not follow it; fetch the release again" in problems


def test_a_public_total_is_published_as_declared_and_stated(
    releases: dict[str, Release], tmp_path: Path
) -> None:
    release = releases["levels"]
    assert release.manifest.noise.public_totals == {"persons": 2400}
    for cube in AXES:
        assert [v for codes, v in listed(release, cube) if set(codes.values()) == {"_T"}] == [2400]
    assert "The total of persons, 2,400, is public knowledge" in release.noise.sentence()
    shutil.copytree(release.folder, tmp_path / "r")
    for cube in AXES:
        _change(tmp_path / "r", cube, lambda values: np.where(np.arange(len(values)) == 0, 2399, values))
    assert (
        "cube ages: its public total is not the 2400 that the manifest states"
        in verify(tmp_path / "r").problems
    )


def test_cells_that_the_manifest_does_not_name_are_found(
    releases: dict[str, Release], tmp_path: Path
) -> None:
    shutil.copytree(releases["levels"].folder, tmp_path / "r")
    content = json.loads((tmp_path / "r/manifest.json").read_text())
    content["cubes"][0]["published"].remove("GEO:2")
    del content["seal"]
    (tmp_path / "r/manifest.json").write_text(Manifest.model_validate(content).to_json())
    problems = verify(tmp_path / "r").problems
    assert "cube ages: it lists cells that its manifest does not publish" in problems


def _change(folder: Path, cube: str, change: Any) -> None:
    """Forge a cube's values, checksums and seal included."""
    path = folder / f"parquet/{cube}.parquet"
    table = pq.read_table(path)
    table = table.set_column(
        table.schema.get_field_index("value"), "value", pa.array(change(table["value"].to_numpy()))
    )
    pq.write_table(table, path)
    _restate(folder)


def _restate(folder: Path) -> None:
    """State the checksums of forged files, and the seal."""
    content = json.loads((folder / "manifest.json").read_text())
    for file in (*content["files"], *(file for entry in content["cubes"] for file in entry["files"])):
        forged = (folder / file["path"]).read_bytes()
        file["sha256"], file["bytes"] = hashlib.sha256(forged).hexdigest(), len(forged)
    del content["seal"]
    (folder / "manifest.json").write_text(Manifest.model_validate(content).to_json())


@pytest.mark.parametrize("kind", few(KINDS, 0, 1))
def test_audits_and_attacks_use_what_is_published_only(
    programmes: dict[str, Programme], releases: dict[str, Release], kind: str
) -> None:
    found = audit(open_case(programmes[kind], SECRET, releases[kind]), without=("reconstruction",))
    assert found.utility is not None
    release = releases[kind]
    seen = published(release)
    measured = {
        crossed(table.cube.signature(depths).levels)
        for universe in seen.universes
        for table in universe.tables
        for depths in table.cube.measured
    }
    for entry in release.manifest.cubes:
        not_measured = {*(entry.sums or ()), *(entry.public or ())}
        assert set(entry.published or ()) - not_measured <= measured
        assert not measured & not_measured
    named = {
        table.cube.level_name(depths)
        for universe in seen.universes
        for table in universe.tables
        for depths in table.cube.measured
    }
    assert {margin.levels for margin in found.utility.noisy.margins} == named
    if found.bounds is not None and kind == "bounded":
        assert found.bounds.attack.contradicted == 0
        assert found.bounds.realised.right == found.bounds.realised.pinned
    assert found.averaging is not None
    bins = found.averaging.realised
    assert bins.targets >= max(bins.hit.values())
    tried = attack(
        Outsider(
            published=seen,
            earlier=None,
            same_secret=False,
            lookup=None,
            bound=None,
            place=None,
            areas=2,
            seconds=1.0,
            threads=1,
            progress=Quiet(),
        ),
        without=("reconstruction",),
    )
    assert tried.disclosure is not None


def test_the_table_builder_shows_no_value_where_the_release_has_none(
    releases: dict[str, Release], tmp_path: Path
) -> None:
    builder = serve_release(releases["interior"], Store(tmp_path / "s.sqlite", lambda: NOON))
    answer = builder.ask(Query("persons", (Axis("SEX"), Axis("AGE.L"), Axis("GEO.M"))), "ann")
    assert isinstance(answer, Answer)
    values = {tuple(sorted(codes.items())): value for codes, value in listed(releases["interior"], "ages")}
    shown = 0
    for at in range(answer.size):
        nodes = np.unravel_index(at, answer.shape)
        codes = {axis.variable: axis.codes[nodes[k]] for k, axis in enumerate(answer.axes)}
        absent = name_of(releases["interior"], "ages", codes) != "AGE:1 x GEO:3 x SEX:1"
        assert answer.withheld[at] == absent
        assert answer.noise_range(at) is None or not absent
        if not absent:
            assert answer.values[at] == values.get(tuple(sorted(codes.items())), 0)
            shown += 1
    assert shown
    assert any("have no value, and are not zero" in warning for warning in answer.warnings)
    total = builder.ask(Query("persons", (Axis("SEX"),)), "ann")
    assert isinstance(total, Refusal)
    assert total.rule is Rule.NOT_PUBLISHED


def test_the_table_builder_over_a_release_gives_sums_without_a_range_of_one_cell(
    releases: dict[str, Release], tmp_path: Path
) -> None:
    builder = serve_release(releases["sums"], Store(tmp_path / "s.sqlite", lambda: NOON))
    answer = builder.ask(Query("persons", (Axis("SEX"),)), "ann")
    assert isinstance(answer, Answer)
    assert not answer.withheld.any()
    assert answer.noise_range(0) is None


def test_the_table_builder_over_records_gives_the_public_total_for_nothing_and_refuses_sums(
    town: Path, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "l.sqlite", lambda: NOON)
    store = Store(tmp_path / "s.sqlite", lambda: NOON)
    account = "[serve]\naccount = { each = 1, user = 9 }\n"
    snapshot, register = 'snapshot = "2021"\n', Register.of(tmp_path / "register", SECRET)
    programme = declared(town, tmp_path / "levels", snapshot + LEVELS, account)
    builder = serve_programme(programme, SECRET, store, ledger=ledger, register=register)
    total = builder.ask(Query("persons", ()), "ann")
    assert isinstance(total, Answer)
    assert total.values.tolist() == [2400]
    assert ledger.accounts() == ()
    assert isinstance(builder.ask(Query("persons", (Axis("EDU"),)), "ann"), Answer)
    assert next(ledger.spent(one) for one in ledger.accounts()).epsilon >= 1  # type: ignore[union-attr]
    sums = declared(town, tmp_path / "sums", snapshot.replace("2021", "sums") + SUMS, account)
    with pytest.raises(Mistakes, match="serve the release instead"):
        serve_programme(sums, SECRET, store, ledger=ledger, register=register)


def test_inference_refuses_what_is_not_published_and_sums(releases: dict[str, Release]) -> None:
    with pytest.raises(Mistakes, match=r"SEX is not published; published are AGE\.L x GEO\.M x SEX"):
        cross_table(releases["interior"], "ages", ["SEX"])
    whole = cross_table(releases["interior"], "ages", ["SEX", "AGE", "GEO"])
    assert whole.counts.sum() > 0
    assert cross_table(releases["sums"], "ages", ["SEX"]).counts.sum() != 0
    with pytest.raises(Mistakes, match="is a sum without noise of its own; infer from the cells of"):
        noise_of(releases["sums"], "persons///GEO:3 x SEX:1")


def test_a_ledger_is_charged_what_is_spent(town: Path, tmp_path: Path) -> None:
    order = '["GEO:3 x SEX x AGE:1", "GEO:2 x SEX x LOC", "rest"]'
    halving = f'kind = "geometric"\nepsilon = 8\nsplit = {{ halving = {order} }}\n'
    programme = declared(town, tmp_path / "c", halving)
    ledger = Ledger.create(tmp_path / "l.sqlite", lambda: NOON)
    budget = EpsilonDelta(Fraction(7), Fraction(1, 10**9))
    ledger.create_account("census", budget, Neighbours.ADD_REMOVE, "person")
    protect(
        programme,
        SECRET,
        tmp_path / "r",
        tmp_path / "p.json",
        clock=lambda: NOON,
        spending=Spending(ledger, "census"),
    )
    spent = ledger.spent("census")
    assert isinstance(spent, EpsilonDelta)
    assert spent.epsilon == 7, "4 + 2 + 1; the last 1 of 8 is left"
    manifest = open_release(tmp_path / "r").manifest.noise
    assert manifest.guarantee is not None
    assert manifest.guarantee.epsilon == 7
    assert manifest.parameters is not None
    assert manifest.parameters.epsilon == 8
    assert manifest.parameters.spent == 7


def test_a_secret_sample_is_stated_beside_what_it_was_drawn_for(town: Path, tmp_path: Path) -> None:
    programme = declared(town, tmp_path / "c", INTERIOR)
    path = tmp_path / "c/programme.toml"
    text = path.read_text().replace(
        "[population]\n", '[population]\nsample = { rate = "1/10", method = "poisson" }\n', 1
    )
    path.write_text(text)
    ledger = Ledger.create(tmp_path / "l.sqlite", lambda: NOON)
    budget = EpsilonDelta(Fraction(2), Fraction(1, 10**9))
    ledger.create_account("census", budget, Neighbours.ADD_REMOVE, "person")
    protect(
        load_programme(path), SECRET, tmp_path / "r", tmp_path / "p.json", clock=lambda: NOON,
        spending=Spending(ledger, "census"),
    )  # fmt: skip
    release = open_release(tmp_path / "r")
    found = release.noise.guarantee
    assert found is not None
    assert found.epsilon == 2
    assert found.sample is not None
    assert float(found.sample.epsilon) == pytest.approx(np.log1p(np.expm1(2) / 10), rel=1e-9)
    assert "epsilon = 0.494" in found.sentence()
    assert "epsilon = 2 and" in found.sentence()
    spent = ledger.spent("census")
    assert isinstance(spent, EpsilonDelta)
    assert spent.epsilon == 2, "not amplified: another release of the same sample is composed first"
    assert replace(found, sample=None) == replace(
        open_release(tmp_path / "r").noise.guarantee or found, sample=None
    )
    assert programme.population is not None
    assert programme.population.sample is None


def _coarse_ages(release: Release) -> tuple[str, ...]:
    return release.read_codes("AGE.L").codes[1:]


def test_weights_are_published_with_noise_and_larger_ones_refused(town: Path, tmp_path: Path) -> None:
    noise = 'kind = "geometric"\nepsilon = 40\nlargest_weight = "5/2"\nsplit = { margins = "none" }\n'
    more = '[[cubes]]\nid = "weighted"\naxes = ["SEX", "AGE.L"]\nweight = "w"\n'
    declared(town, tmp_path / "c", noise)
    persons = pq.read_table(tmp_path / "c/persons.parquet")
    weights = np.random.default_rng(5).uniform(0.5, 2.5, len(persons))
    pq.write_table(persons.append_column("w", pa.array(weights)), tmp_path / "c/persons.parquet")
    path = tmp_path / "c/programme.toml"
    path.write_text(path.read_text().replace("[noise]", f"{more}[noise]"))
    protect(load_programme(path), SECRET, tmp_path / "r", tmp_path / "p.json", clock=lambda: NOON)
    assert verify(tmp_path / "r").passed
    release = open_release(tmp_path / "r")
    rows = release.read_cube("weighted").to_pylist()
    assert sum(row["value"] for row in rows) == pytest.approx(weights.sum(), rel=0.02)
    assert all(round(row["value"] * 10) == pytest.approx(row["value"] * 10, abs=1e-6) for row in rows)
    assert release.manifest.noise.weights is not None
    assert release.manifest.noise.weights.largest == Fraction(5, 2)
    assert "persons///AGE:1 x SEX:1/w" in (release.manifest.noise.parameters.other_cells or {})  # type: ignore[union-attr]
    exact = sum(weights[np.array(persons["sex"].to_pylist()) == "1"])
    with pytest.raises(Mistakes, match="SEX is not published"):
        weighted(release, "weighted", 'SEX == "1"')
    cells = [
        weighted(release, "weighted", f'SEX == "1" and AGE == "{code}"') for code in _coarse_ages(release)
    ]
    assert (
        abs(sum(one.published for one in cells) - exact)
        < 6 * sum(one.standard_error**2 for one in cells) ** 0.5
    )
    assert all(one.low <= one.published <= one.high for one in cells)
    path.write_text(path.read_text().replace('"5/2"', "2.4"))
    with pytest.raises(Mistakes, match=r"weights above noise\.largest_weight"):
        protect(load_programme(path), SECRET, tmp_path / "s", tmp_path / "q.json", clock=lambda: NOON)
    assert not (tmp_path / "s").exists()
    path.write_text(path.read_text().replace("largest_weight = 2.4\n", ""))
    with pytest.raises(Mistakes, match=r"state it with noise\.largest_weight"):
        protect(load_programme(path), SECRET, tmp_path / "s", tmp_path / "q.json", clock=lambda: NOON)
