"""Results of the library: typed, shown, as frames and charts; audits need what made a release."""

from pathlib import Path

import pyarrow as pa
import pytest

import discreet as ds
from discreet.api.columns import Tables
from tests.api.test_protect import CUBE, FRAME, KEY, NOISE, census
from tests.serve.http.conftest import running

SLOW = ["reconstruction", "region", "disclosure", "bayes"]


def test_an_audit_needs_the_programme_and_the_secret_of_a_release(tmp_path: Path) -> None:
    secret = ds.Secret(KEY).save(tmp_path / "secret.key")
    programme = census().programme([CUBE], NOISE)
    made = ds.protect(programme, secret=secret, out=tmp_path / "out")
    opened = ds.open_release(tmp_path / "out")
    with pytest.raises(
        ds.Mistakes, match="was opened from a folder; give the programme that made it and secret="
    ):
        ds.audit(opened, census())
    report = ds.audit(opened, programme, secret=secret, without=SLOW)
    assert report.summary() == ds.audit(made, census(), without=SLOW).summary()
    with pytest.raises(
        ds.Mistakes, match=r"audit: bayes: was left out, or does not apply .*left out are .*bayes"
    ):
        _ = report.bayes
    assert report.redundancy.found is report.found.redundancy
    assert report.protection.found.bound == 5
    assert 0 <= report.averaging.recovered <= report.averaging.attack.targets
    assert report.averaging.chart().to_dict()["$schema"].endswith(".json")
    assert "averaging" in report.to_pandas()["measure"].tolist()
    assert "<section" in report._repr_html_()
    with pytest.raises(ds.Mistakes, match="secret: is not the one that made this release"):
        ds.audit(opened, programme, secret=bytes(32))
    other = census().programme([CUBE], ds.CellKey(V=1, D=3))
    with pytest.raises(ds.Mistakes, match="programme: is not the one that made this release"):
        ds.utility(opened, other, secret=secret)
    with pytest.raises(ds.Mistakes, match="microdata: are not those of this release"):
        ds.audit(made, census(FRAME.assign(sex=FRAME["sex"].iloc[::-1].to_numpy())), without=SLOW)
    with pytest.raises(ds.Mistakes, match="programme: an object of type DataFrame; give a Population"):
        ds.utility(made, FRAME)
    again = ds.protect(programme.to_toml(tmp_path / "declared"), secret=KEY)
    with pytest.raises(
        ds.Mistakes, match="the release was made from a programme file; leave the population out"
    ):
        ds.audit(again, census())


def test_results_are_frozen_and_have_frames_and_charts() -> None:
    found = ds.ptable(V=2, D=5)
    with pytest.raises(AttributeError):
        found.found = None  # type: ignore[misc, assignment]
    with pytest.raises(AttributeError):
        _ = found.nothing
    with pytest.raises(ds.Mistakes, match="choose from ptable"):
        found.chart("nothing")
    assert "<figure" in found._repr_html_()
    forecast = ds.forecast(census(of="person"), CUBE, NOISE, epsilon=[1])
    assert forecast.chart().to_dict()
    with pytest.raises(ds.Mistakes, match="this result has none"):
        ds.convert(rho=1, delta=1e-6).chart()
    assert ds.convert(rho=1, delta=1e-6).to_pandas()["figure"].tolist() == ["what", "published", "tighter"]


def test_text_is_encoded_the_same_in_runs_and_without() -> None:
    values = [value for value in ("a", "b", None, "c", "a") for _ in range(3000)]
    column = pa.chunked_array([values, values[::7], []], pa.string())
    tables = Tables()
    tables.take(
        "persons", pa.table({"x": column, "y": column.combine_chunks().take(pa.array(range(len(column))))})
    )
    tables.encode("persons", ["x", "y"])
    batch = pa.Table.from_batches(tables.records("persons").batches([], ["x", "y"]))
    assert batch["x"].to_pylist() == batch["y"].to_pylist() == column.to_pylist()
    assert pa.types.is_dictionary(batch["x"].type)


def test_maps_are_subtracted_by_an_attack() -> None:
    # the grid G0 is L0 and two persons of L1
    area, cell = [f"L{k // 100}" for k in range(600)], ["G0" if k < 102 else "G1" for k in range(600)]
    people = pa.table({"pid": range(600), "lau": area, "grid": cell, "sex": ["F", "M", "F"] * 200})
    population = ds.Population(persons=people, person_id="pid", geography=["lau"])
    release = ds.protect(
        population, [ds.Cube("lau", "sex"), ds.Cube("grid", "sex")], NOISE, secret=KEY, progress=False
    )
    lookup = people.select(["grid", "lau"]).to_pandas().drop_duplicates()
    left = ["reconstruction", "disclosure", "bayes", "averaging", "least_squares"]
    found = ds.attack(release, lookup=lookup, geographies=["grid", "lau"], without=left, progress=False)
    assert found.differencing.maps.geographies == ("grid", "lau")
    assert found.differencing.maps.compared > 0
    assert ds.attack(release, without=left, progress=False).differencing.maps is None
    for wrong, said in (
        ({"lookup": lookup}, "lookup, geographies: missing; give both"),
        ({"lookup": lookup, "geographies": ["grud", "lau"]}, "grud: no such column; did you mean 'grid'?"),
    ):
        with pytest.raises(ds.Mistakes) as refused:
            ds.attack(release, progress=False, **wrong)
        assert said in str(refused.value)


def test_a_table_builder_is_attacked_by_its_address() -> None:
    programme = census().programme([CUBE], NOISE)
    with running(ds.serve(programme, secret=KEY, progress=False)) as address:
        found = ds.attack_server(f"{address}/", axes=["sex"], filtered="age", requests=9, rate=1000)
    assert found.requests == 9
    assert found.axes == ("sex",)
    assert found.summary().startswith(f"{address}: {found.answered} of 9 requests answered")
    with pytest.raises(ds.Mistakes, match="is not on this machine"):
        ds.attack_server("http://census.example")
