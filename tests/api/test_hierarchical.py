"""Hierarchical noise from a data frame: the release of the command, and inference from the table."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as ds
from discreet.programme.hierarchical import DeclaredHierarchical
from tests.cli.called import discreet

RNG = np.random.default_rng(7)
LAU = RNG.integers(0, 6, 900)
FRAME = pd.DataFrame(
    {
        "pid": np.arange(900),
        "nuts3": [f"N{area // 3}" for area in LAU],
        "lau": [f"L{area}" for area in LAU],
        "sex": RNG.choice(["F", "M"], 900),
        "age": RNG.integers(0, 90, 900),
    }
)
CUBE = ds.Cube("lau", "sex", ds.bands("age", 0, 15, 65))
STRATEGY: dict[str, Any] = {
    "histogram": ["sex", "age"],
    "levels": {"total": "1/5", "nuts3": "2/5", "lau": "2/5"},
    "queries": {"total": "1/4", "sex": "1/4", "detailed": "1/2"},
}
NOISE = ds.Hierarchical(geography="lau", rho=1, strategy=STRATEGY, snapshot="2021")


def census(persons: Any = FRAME) -> ds.Population:
    return ds.Population(persons=persons, person_id="pid", geography=["nuts3", "lau"], of="person")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("office")
    ds.Secret.new().save(made / "secret.key")
    FRAME.to_parquet(made / "persons.parquet")
    return made


@pytest.fixture(scope="module")
def table(folder: Path) -> ds.Table:
    persons = folder / "persons.parquet"
    return ds.protect(census(persons), CUBE, NOISE, secret=folder / "secret.key", progress=False)


def test_it_has_the_keys_of_a_programme_file() -> None:
    declared = set(DeclaredHierarchical.model_fields) - {"kind"}
    assert set(ds.Hierarchical.__dataclass_fields__) == declared


def test_queries_of_all_levels_are_given_once() -> None:
    once = NOISE.declared()
    every = dict.fromkeys(STRATEGY["levels"], STRATEGY["queries"])
    by_level = ds.Hierarchical(
        geography="lau", rho=1, strategy={**STRATEGY, "queries": every}, snapshot="2021"
    )
    assert once == by_level.declared()
    assert ds.Hierarchical(geography="lau", epsilon=1, strategy="pl94-2020").declared()["law"] == "geometric"


def test_the_command_gives_the_same_release_and_the_same_estimates(folder: Path, table: ds.Table) -> None:
    """Under one snapshot the noise of library and command is the same."""
    programme = census(folder / "persons.parquet").programme(CUBE, NOISE).to_toml(folder / "declared")
    made = discreet(
        "protect", programme, "--secret", folder / "secret.key", "--out", folder / "out", "--quiet"
    )
    assert made.returncode == 0, made.stderr
    commanded = ds.open_release(folder / "out")[table.id]
    pd.testing.assert_frame_equal(commanded.interval(), table.interval())
    assert commanded.to_arrow().equals(table.to_arrow())
    where = {"lau": "N0"}, {"lau": "N1"}
    mine = ds.inference.estimated_difference(table, where=where[0], other_where=where[1])
    assert mine == ds.inference.estimated_difference(folder / "out", table.id, 'lau == "N0"', 'lau == "N1"')
    assert mine == ds.inference.estimated_difference(commanded.release, None, *where)
    shown = discreet(
        "infer", "difference", "--release", folder / "out", "--cube", table.id, "--where", "lau=N0",
        "--other-where", "lau=N1",
    )  # fmt: skip
    assert mine.sentence in shown.stdout


def test_the_tables_add_up_and_their_estimates_are_near_the_truth(table: ds.Table) -> None:
    wide = table.sel(age="_T").wide()
    assert (wide["F"] + wide["M"] == wide["_T"]).all()
    true = FRAME.groupby("lau").size()
    for area in true.index:
        found = ds.inference.estimated(table, where={"lau": area})
        assert abs(found.estimate - true[area]) < 8 * found.standard_error


def test_codes_are_chosen_by_text_or_by_variable(table: ds.Table) -> None:
    by_text = ds.inference.estimated_total(table, where='lau in ("L0", "L1") and sex == "F"')
    by_code = ds.inference.estimated_total(table, where={"lau": ["L0", "L1"], "sex": "F"})
    assert by_text == by_code


def refused(function: Any, *given: object, **named: object) -> str:
    with pytest.raises(ds.Mistakes) as found:
        function(*given, **named)
    assert str(found.value).count("\n") < 2
    return str(found.value)


def test_wrong_cells_and_tables_are_refused_in_a_line(table: ds.Table) -> None:
    inference = ds.inference
    assert "both cells are the total" in refused(inference.estimated_difference, table)
    assert "leave cube out" in refused(inference.estimated, table, 'sex == "F"')
    assert "a part of the table" in refused(inference.estimated, table.sel(sex="F"))
    assert "a part of the table" in refused(inference.estimated, table.sel(sex=["F", "_T"]))
    assert "without its release" in refused(inference.estimated, pickle.loads(pickle.dumps(table)))
    assert "type DataFrame" in refused(inference.estimated, FRAME)
    assert 'such as "1"' in refused(inference.estimated, table, where={"sex": 1})
    assert "inference.estimated" in refused(table.noise)


def test_what_is_measured_may_be_in_no_cube() -> None:
    """Bands of the histogram without a cube that has them, from a frame; each cube is found by its table."""
    strategy = {**STRATEGY, "histogram": ["sex", ds.bands("age", 0, 15, 65)]}
    noise = ds.Hierarchical(geography="lau", rho=1, strategy=strategy)
    cubes = [ds.Cube("lau", "sex"), ds.Cube("sex")]
    two = ds.protect(census(), cubes, noise, secret=ds.Secret.new(), progress=False)
    assert "name one: this release has lau_sex, sex" in refused(ds.inference.estimated, two)
    assert ds.inference.estimated(two["sex"]).cube == "sex"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rho": None}, "rho: is missing"),
        ({"epsilon": 1}, "the budget of discrete-gaussian is its rho"),
        ({"strategy": "pl94"}, '"pl94-2020"'),
        ({"strategy": {**STRATEGY, "levels": {"total": "1/5", "lau": "2/5"}}}, "sum to 3/5"),
        ({"strategy": {**STRATEGY, "histogram": ["sex"]}}, "age is not in the histogram"),
        ({"geography": "nuts"}, "did you mean 'nuts3'?"),
    ],
)
def test_a_wrong_declaration_is_refused_in_a_line(changed: dict[str, Any], message: str) -> None:
    given = {"geography": "lau", "rho": 1, "strategy": STRATEGY, **changed}
    noise = ds.Hierarchical(**given)
    assert message in refused(ds.protect, census(), CUBE, noise, secret=ds.Secret.new(), progress=False)
