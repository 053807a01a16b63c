"""The ONS package ``cell-key-perturbation`` as an oracle: same p-table, keys and records, same counts in every cell."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cell_key_perturbation.create_perturbed_table import create_perturbed_table
from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule

from discreet.io.ptable_files import read_ptable
from discreet.maths.cells.permutation import no_permutation
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.population import encode
from discreet.population.encode import EncodedRecords
from discreet.population.values import Coder
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter
from tests.cases import few

SIZES = {"area": 6, "sex": 2, "age": 5}
RECORDS = 12_000


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    """Cells from none to more than a thousand: beyond 750 the package uses the rows 501 to 750 again."""
    rng = np.random.default_rng(8)
    share = np.array([0.6, 0.2, 0.1, 0.08, 0.0195, 0.0005])
    return pd.DataFrame(
        {
            "area": rng.choice(SIZES["area"], RECORDS, p=share),
            "sex": rng.integers(0, SIZES["sex"], RECORDS),
            "age": rng.choice(SIZES["age"], RECORDS, p=[0.4, 0.3, 0.2, 0.09, 0.01]),
            "record_key": rng.integers(0, 256, RECORDS),
        }
    )


def random_changes(keys: int = 256) -> pd.DataFrame:
    """A table in which every row differs, so that a wrong row shows."""
    counts, key = np.divmod(np.arange(750 * keys), keys)
    changes = np.random.default_rng(9).integers(-4, 5, 750 * keys)
    return pd.DataFrame({"pcv": counts + 1, "ckey": key, "pvalue": np.maximum(changes, -(counts + 1))})


def ours(records: pd.DataFrame, table: pd.DataFrame, tmp_path: Path) -> np.ndarray:
    """The published grid, its totals at node 0."""
    table.to_csv(tmp_path / "ptable.csv", index=False)
    trees = {
        name: codelist(name, [Code(str(code), "", "") for code in range(size)])
        for name, size in SIZES.items()
    }
    cube = Cube(
        "t", "persons", tuple(breakdown(name, name, tree, tree.leaves) for name, tree in trees.items())
    )
    codes = {
        name: Coder({str(k): k for k in range(SIZES[name])}).encode(pa.array(records[name].to_numpy())).codes
        for name in SIZES
    }
    keys = encode.given_keys(pa.array(records["record_key"].to_numpy()))
    with ThreadPoolExecutor(2) as pool:
        counter = CubeCounter([cube], pool)
        counter.add(EncodedRecords(codes, keys, {}, {}))
        lookup = read_ptable(tmp_path / "ptable.csv").lookup
        noise = CellKeyMechanism(lookup, no_permutation(lookup.modulus))
        published = noise.perturb(counter.table(0))
    grid = np.zeros(cube.shape, dtype=np.int64)
    grid.reshape(-1)[published.cells] = published.values
    return grid


@pytest.mark.parametrize(
    "table",
    few([random_changes(), generate_ptable_10_5_rule()], 0),
    ids=["random", "10-5"],
)
def test_every_cell_and_margin_is_that_of_the_package(
    records: pd.DataFrame, table: pd.DataFrame, tmp_path: Path
) -> None:
    grid = ours(records, table, tmp_path)
    compared = wrapped = 0
    for kept in ([], ["sex"], ["age"], ["sex", "age"]):
        for place in ([], ["area"]):
            if not kept + place:
                continue
            theirs = create_perturbed_table(records, table, place, kept, "record_key", threshold=0)
            at = tuple(theirs[name] + 1 if name in kept + place else 0 for name in SIZES)
            np.testing.assert_array_equal(grid[at], theirs["count"].to_numpy(dtype=np.int64))
            compared += len(theirs)
            wrapped += int((theirs["pre_sdc_count"] > 750).sum())
    assert compared > 100
    assert wrapped > 10
