"""The study of an office's own records: clusters as declared, neighbours with the same places, no count given away."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.advise.declared_geography import DeclaredGeography, declared_records, study_declared
from discreet.cli.study import PICTURE, REPORT, app
from discreet.errors import Mistakes
from discreet.maths.microaggregation import expected_absolute_sum, mdav
from discreet.programme.programme import load_programme

TOWN = """
[population]
persons = "persons.csv"
person_id = "id"
geography = ["county", "quarter"]

[variables.GEO]
column = "quarter"
codelist = "geo.csv"
breakdowns = { C = 1, Q = 2 }

[variables.SEX]
column = "sex"
codelist = "sex.csv"

[variables.JOB]
column = "job"
codelist = "job.csv"

[variables.CARS]
column = "cars"
codelist = "cars.csv"

[[cubes]]
id = "1"
unit = "persons"
axes = ["GEO.Q", "SEX"]

[[structural_zeros]]
where = 'JOB == "none" and CARS == "two"'

[noise]
kind = "cell-key"
V = 2.0
D = 5

[release]
formats = ["parquet"]
"""
QUARTERS = [f"q{number}" for number in range(12)]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    generator = np.random.default_rng(1)
    lines = ["id,county,quarter,sex,job,cars,east,north"]
    for number in range(2_400):
        at = int(generator.integers(12))
        job = ("none", "some")[int(generator.random() < 0.6)]
        cars = "one" if job == "none" else ("one", "two")[int(generator.random() < 0.4)]
        sex = "fm"[int(generator.random() < 0.5)]
        east, north = at % 4 + generator.random(), at // 4 + generator.random()
        lines.append(f"{number},c{at // 6},q{at},{sex},{job},{cars},{east:.4f},{north:.4f}")
    (folder / "persons.csv").write_text("\n".join(lines) + "\n")
    places = ["c0,,", "c1,,"] + [f"q{at},c{at // 6}," for at in range(12)]
    for name, codes in {
        "geo": places,
        "sex": ["f,,", "m,,"],
        "job": ["none,,", "some,,"],
        "cars": ["one,,", "two,,"],
    }.items():
        (folder / f"{name}.csv").write_text("\n".join(["code,parent,label", *codes]) + "\n")
    (folder / "programme.toml").write_text(TOWN)
    return folder / "programme.toml"


def rows(town: Path) -> list[dict[str, str]]:
    head, *lines = (town.parent / "persons.csv").read_text().split()
    return [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]


DECLARED = DeclaredGeography(regions="GEO.C", attributes=("SEX", "JOB", "CARS"), clusters="GEO")
MEASURED = DeclaredGeography(regions="GEO.C", attributes=("SEX", "JOB", "CARS"), x="east", y="north")


def test_cells_regions_and_clusters_are_those_of_the_records(town: Path) -> None:
    found = declared_records(load_programme(town), DECLARED)
    assert (found.shape, found.possible.size) == ((2, 2, 2), 6)  # none with two cars cannot be
    assert found.declared is not None
    cells = list(product("fm", ("none", "some"), ("one", "two")))
    expected = Counter(
        (row["quarter"], row["county"], row["sex"], row["job"], row["cars"]) for row in rows(town)
    )
    names = sorted(QUARTERS, key=QUARTERS.index)
    seen = Counter(
        (names[cluster], f"c{zip_}", *cells[found.possible[cell]])
        for cluster, zip_, cell in zip(
            found.declared.tolist(), found.zips.tolist(), found.cell.tolist(), strict=True
        )
    )
    assert seen == expected


def test_declared_clusters_have_the_errors_that_the_formula_predicts(town: Path) -> None:
    records = declared_records(load_programme(town), DECLARED)
    realised = [study_declared(records, seed, [7], [1.0], 5).study.outcomes[0] for seed in range(20)]
    assert {one.k for one in realised} == {200}  # the mean size: what was given does not matter
    assert {one.clusters for one in realised} == {12}
    predicted = expected_absolute_sum(6, 1.0, 2)
    mean = sum(one.realised for one in realised) / len(realised)
    assert abs(mean - predicted) < 4 * 0.8 * predicted / math.sqrt(240)
    assert realised[0].predicted == predicted > 1.8 * realised[0].predicted_as_if_1


def test_coordinates_make_the_clusters_of_micro_aggregation(town: Path) -> None:
    records = declared_records(load_programme(town), MEASURED)
    found = study_declared(records, 1, [50], [1.0], 5)
    sizes = []
    for county in ("c0", "c1"):
        points = [(float(r["east"]), float(r["north"])) for r in rows(town) if r["county"] == county]
        sizes += np.bincount(mdav(np.array(points), 50)).tolist()
    assert (found.smallest, found.largest) == (min(sizes), max(sizes))
    assert found.study.outcomes[0].clusters == len(sizes)


def test_uniques_are_counted_in_clusters(town: Path) -> None:
    records = declared_records(load_programme(town), MEASURED)
    found = study_declared(records, 1, [2], [1.0], 1)
    assert found.unique > 0.5  # two neighbours seldom agree in everything
    assert study_declared(declared_records(load_programme(town), DECLARED), 1, [2], [1.0], 1).unique < 0.01


def test_the_adversary_learns_more_with_a_larger_epsilon_and_most_with_noise_for_sensitivity_1(
    town: Path,
) -> None:
    records = declared_records(load_programme(town), DECLARED)
    weak, middle, strong = study_declared(records, 1, [50], [0.01, 1.0, 8.0], 60).adversaries
    assert weak.right < middle.right < strong.right
    assert abs(weak.right - weak.guessed) < 0.1
    assert strong.right > 0.9
    for one in (middle, strong):  # with 0.01 there is only the prior
        assert one.right_as_if_1 > one.right
        assert one.largest_odds == pytest.approx(math.exp(one.epsilon))


def test_the_command_reports_and_writes_for_its_owner_only(town: Path, tmp_path: Path) -> None:
    words = ["declared-geography", str(town), "--regions", "GEO.C", "--attributes", "SEX,JOB,CARS"]
    words += ["--epsilon", "1", "--targets", "5"]
    out = tmp_path / "study"
    result = CliRunner().invoke(app, [*words, "--clusters", "GEO", "--json", "--out", str(out)])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((out / REPORT).read_text())
    assert (report["confidential"], report["sensitivity"], report["cells"]) == (True, 2, 6)
    assert report["adversaries"][0]["epsilon"] == 1
    assert (out / PICTURE).read_bytes().startswith(b"\x89PNG")
    assert out.stat().st_mode & 0o077 == 0
    shown = CliRunner().invoke(app, [*words, "--x", "east", "--y", "north", "--k", "100"])
    assert "keep this confidential" in shown.stdout
    assert "k 100, epsilon 1" in shown.stdout


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"clusters": "GEO", "x": "east", "y": "north"}, "both"),
        ({"x": "east"}, "neither"),
        ({"clusters": "CITY"}, "CITY"),
        ({"regions": "GEO.X", "clusters": "GEO"}, "GEO.X"),
        ({"attributes": ("SEX", "WAGE"), "clusters": "GEO"}, "WAGE"),
        ({"attributes": ("SEX", "GEO.Q"), "clusters": "GEO"}, "places are public"),
        ({"attributes": ("SEX", "SEX"), "clusters": "GEO"}, "once"),
        ({"attributes": (), "clusters": "GEO"}, "--attributes"),
        ({"x": "east", "y": "height"}, "height"),
        ({"x": "east", "y": "sex"}, "numbers"),
        ({"clusters": "SEX"}, "crosses|public"),
        ({"attributes": ("JOB",), "clusters": "SEX"}, "crosses"),
    ],
)
def test_a_wrong_declaration_is_refused(town: Path, options: dict[str, object], what: str) -> None:
    given = {"regions": "GEO.C", "attributes": ("SEX", "JOB")} | options
    with pytest.raises(Mistakes, match=what):
        declared_records(load_programme(town), DeclaredGeography(**given))  # type: ignore[arg-type]


def test_no_message_names_a_value_of_the_records(town: Path, tmp_path: Path) -> None:
    for file in town.parent.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    persons = tmp_path / "persons.csv"
    persons.write_text(persons.read_text() + "9999,c0,q0,secretcode,some,one,1,1\n")
    with pytest.raises(Mistakes, match="not in the codelist") as raised:
        declared_records(load_programme(tmp_path / "programme.toml"), DECLARED)
    assert "secretcode" not in str(raised.value)
    persons.write_text(persons.read_text().replace("secretcode,some,one", "f,none,two"))
    with pytest.raises(Mistakes, match="structural_zeros"):
        declared_records(load_programme(tmp_path / "programme.toml"), DECLARED)
