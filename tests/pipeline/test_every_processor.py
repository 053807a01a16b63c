"""What is published is the same on every processor: BLAS, NumPy, the C library and Numba choose their code by it.

These choices are made once in a process: this one has the newest code that the processor can run, another one the
oldest, and more threads (``make test`` allows one).
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.io.ptable_files import PTableFormat, lookup_for, write_ptable
from discreet.io.register import Register
from discreet.maths.cells.lookup import Order
from discreet.maths.noise.additive import (
    discrete_gaussian,
    discrete_laplace,
    truncated_laplace,
    truncated_normal,
)
from discreet.maths.noise.hellinger import hellinger
from discreet.maths.noise.ptable_solver import PTableParameters, Variance, solve
from discreet.maths.noise.thresholds import row_table, threshold_table
from discreet.pipeline.swap import write_swap
from discreet.programme.programme import load_programme
from discreet.synth import generate
from tests.pipeline.conftest import SECRET, contents, run
from tests.pipeline.small_country import NOISE as HIERARCHICAL
from tests.pipeline.small_country import make_country
from tests.pipeline.test_golden import digests as golden_release
from tests.pipeline.test_swap_stage import SWAP

ROOT = Path(__file__).parents[2]
OLD = {
    "OPENBLAS_CORETYPE": "Prescott",  # no AVX, no FMA
    "OPENBLAS_NUM_THREADS": "2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4",
    "NUMBA_CPU_NAME": "generic",
}
WANTED = {
    "usual": PTableParameters(D=5, V=2.0, js=2),
    "wide": PTableParameters(D=10, V=4.0, js=3, variance=Variance.EQUAL_WHERE_FEASIBLE),
    "staying": PTableParameters(D=5, V=1.0, pstay=0.5),
    "narrow": PTableParameters(D=2, V=1.0, js=1),
}
LAWS = {
    "geometric": discrete_laplace("0.31"),
    "laplace": truncated_laplace("0.7", 12),
    "normal": truncated_normal("1.7", 9),
    "gaussian": discrete_gaussian("0.0992264"),
}
NOISE = {
    "geometric": 'kind = "geometric"\nepsilon = 800',
    "normal": 'kind = "normal"\nepsilon = 3000\nbound = 30\ndelta = 1e-5',
    "gaussian": 'kind = "discrete-gaussian"\nrho = 300',
}
SEED = "ab" * 32  # of the snapshot: it is random where it is not given


def tables(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Solved p-tables, to the last bit and as files, and thresholds of noise with a guarantee."""
    for name, wanted in WANTED.items():
        table = solve(wanted)
        facts = [(table.variance(row), table.entropy(row)) for row in range(table.last_row + 1)]
        yield f"{name} p-table", b"".join(p.tobytes() for p in table.probabilities)
        yield f"{name} facts", repr((table.V, table.notes, facts)).encode()
        for form in PTableFormat:
            modulus = None if form is PTableFormat.R else 256
            path = folder / f"{name}.{form}"
            write_ptable(path, form, lookup_for(table, form, Order.SHUFFLED, SECRET, modulus))
            yield path.name, path.read_bytes()
    for name, law in LAWS.items():
        made = threshold_table(law)
        yield f"{name} thresholds", repr((made.first, made.numbers, made.certified_epsilon())).encode()
    row = row_table(hellinger("2.5"), 17)
    yield "hellinger thresholds", repr((row.first, row.numbers)).encode()


def releases(folder: Path) -> Iterator[tuple[str, bytes]]:
    """A swap, and releases with a guarantee, of one small census."""
    census = folder / "small"
    generate(800, 3, census, tables=["3.3"], threads=1)
    declared = (census / "programme.toml").read_text()
    (census / "programme.toml").write_text(declared + SWAP)
    swapped = folder / "swapped", folder / "private"
    write_swap(load_programme(census / "programme.toml"), SECRET, *swapped)
    for place in (census, *swapped):
        yield from ((f"{place.name}/{name}", held) for name, held in contents(place).items())
    for name, noise in NOISE.items():
        shutil.copytree(census, folder / name)
        drawn = f'[noise]\nallow_weak = true\n{noise}\nsnapshot = "2021"\n'
        (folder / name / "programme.toml").write_text(declared.partition("[noise]")[0] + drawn)
        register = Register.of(folder / f"{name}.register", SECRET)
        register.bound("2021", {}, bytes.fromhex(SEED))
        run(folder / name, folder / f"{name} release", register=register.path)
        yield from ((f"{name}/{file}", held) for file, held in contents(folder / f"{name} release").items())


def hierarchical(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Estimates, whole counts and measurements of a tree of areas, by both fits, with bounds and without."""
    bounds = '[noise.invariants.bounds]\nfile = "bounds.csv"\nquery = "MAR"\n'
    own_level = HIERARCHICAL.replace('levels = { STATE = "1/4"', 'levels = { total = "1/8", STATE = "1/8"')
    own_level = own_level.replace("STATE = { total", 'total = { detailed = "1" }\nSTATE = { total')
    kinds = {
        "tree": HIERARCHICAL + bounds,
        "own-level": own_level.replace('rho = "1/2"', 'rho = "1/2"\nfit = "own-level"'),
        "laplace": HIERARCHICAL.replace('rho = "1/2"', 'law = "geometric"\nepsilon = 4'),
    }
    for name, noise in kinds.items():
        place = folder / f"{name} country"
        make_country(place, noise=noise.replace("[noise.strategy]", 'snapshot = "2021"\n[noise.strategy]'))
        (place / "bounds.csv").write_text("GEO,MAR,lower,upper\nS0C0T0B0,W,0,900\nS1C0T1B2,S,1,\n")
        register = Register.of(folder / f"{name}.register", SECRET)
        register.bound("2021", {}, bytes.fromhex(SEED))
        run(place, folder / f"{name} tables", register=register.path)
        yield from ((f"{name}/{file}", held) for file, held in contents(folder / f"{name} tables").items())


def first(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The release of the golden digests."""
    yield from (
        (f"golden/{name}", digest.encode()) for name, digest in golden_release(folder / "golden").items()
    )


PARTS = {
    "cell key": (first, tables),
    "guarantees": (releases,),
    "tree": (hierarchical,),
}


def published(part: str, folder: Path) -> dict[str, str]:
    """The digest of everything in a part."""
    made = (one for several in PARTS[part] for one in several(folder))
    return {name: hashlib.sha256(held).hexdigest() for name, held in made}


@pytest.mark.parametrize(
    ("part", "files"),
    [
        ("cell key", 30),
        pytest.param("guarantees", 30, marks=pytest.mark.long),
        pytest.param("tree", 10, marks=pytest.mark.long),
    ],
)
def test_what_is_published_does_not_depend_on_the_processor(part: str, files: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.pipeline.test_every_processor", part]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | OLD, stdout=subprocess.PIPE, text=True) as run:
        new = published(part, tmp_path)
        old = json.loads(run.communicate()[0])
    assert run.returncode == 0
    assert len(new) > files
    assert {name for name in new | old if new.get(name) != old.get(name)} == set()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(published(sys.argv[1], Path(place))))
