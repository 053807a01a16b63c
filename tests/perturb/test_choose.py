"""Which mechanism a programme gets, and what is refused before anything is counted."""

from pathlib import Path

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.io.ptable_files import PTableFormat, lookup_for, write_ptable
from discreet.maths.cells.lookup import Order, change
from discreet.maths.cells.permutation import permuted, secret_permutation
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.choose import cell_key_mechanism, mechanism
from discreet.perturb.private import PrivateMechanism
from discreet.programme.noise import CellKeyNoise, KeyKind
from discreet.programme.programme import Programme, load_declaration
from tests.cases import few

SECRET = bytes(range(32))
TABLE = solve(PTableParameters(3, 1.0))
PROGRAMME = """
[population]
persons = "absent.parquet"
person_id = "pid"

[variables.X]
codelist = "x.csv"
of = "person"

[[cubes]]
id = "line"
axes = ["X"]
"""


def programme(folder: Path, noise: str, more: str = "") -> Programme:
    (folder / "x.csv").write_text("code,parent,label\na,,\nb,,\n")
    (folder / "programme.toml").write_text(f"{PROGRAMME}{more}\n[noise]\n{noise}\n")
    return load_declaration(folder / "programme.toml")


def test_the_noise_that_is_declared_is_made(tmp_path: Path) -> None:
    cell_key = mechanism(programme(tmp_path, 'kind = "cell-key"\nV = 2\nD = 5'), SECRET, SECRET)
    private = mechanism(programme(tmp_path, 'kind = "geometric"\nepsilon = 2'), SECRET, bytes(32))
    assert isinstance(cell_key, CellKeyMechanism)
    assert isinstance(private, PrivateMechanism)
    assert private.key == bytes(32)


def test_a_delta_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    short = 'kind = "laplace"\nepsilon = 2\nbound = 9\ndelta = {}'
    spent = mechanism(programme(tmp_path, short.format("0.5")), SECRET, SECRET)
    assert isinstance(spent, PrivateMechanism)
    delta = float(spent.plan.delta())
    assert 0 < delta < 0.1
    mechanism(programme(tmp_path, short.format(delta * 1.001)), SECRET, SECRET)
    with pytest.raises(Mistakes, match="truncation at 9"):
        mechanism(programme(tmp_path, short.format(delta * 0.999)), SECRET, SECRET)


def test_weights_are_refused_under_noise_with_a_guarantee(tmp_path: Path) -> None:
    weighted = 'weight = "w"'
    with pytest.raises(Mistakes, match="no bounded sensitivity"):
        mechanism(programme(tmp_path, 'kind = "geometric"\nepsilon = 2', weighted), SECRET, SECRET)
    mechanism(programme(tmp_path, 'kind = "cell-key"\nV = 2\nD = 5', weighted), SECRET, SECRET)


@pytest.mark.parametrize("keys", KeyKind)
@pytest.mark.parametrize("order", few(Order, 0, 2))
@pytest.mark.parametrize("kind", [PTableFormat.R, PTableFormat.ONS])
def test_a_file_is_looked_up_as_it_is_laid_out_by_plain_or_permuted_sums(
    tmp_path: Path, kind: PTableFormat, order: Order, keys: KeyKind
) -> None:
    held = lookup_for(TABLE, kind, order, None if order is Order.PLAIN else bytes(32))
    write_ptable(tmp_path / "t.csv", kind, held)
    made = cell_key_mechanism(CellKeyNoise(tmp_path / "t.csv", keys), SECRET)
    assert made.keys is keys
    sums = np.random.default_rng(1).integers(0, made.lookup.modulus, 500).astype(np.uint32)
    used = sums if keys is KeyKind.PLAIN else permuted(secret_permutation(SECRET, made.lookup.modulus), sums)
    assert (permuted(made.permutation, sums) == used).all()
    for count in (1, 2, TABLE.last_row, 900):
        drawn = change(made.lookup, np.full(len(sums), count), used)
        assert (drawn == change(held, np.full(len(sums), count), used)).all()
