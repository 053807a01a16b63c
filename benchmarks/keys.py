"""Record keys from ids against a loop over BLAKE2b in Python; noise by permuted cell keys against plain sums."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.census import SECRET, noise
from benchmarks.costs import Cost, Stopwatch, measured
from benchmarks.lines import Line, Section, against
from discreet.io.files import BATCH
from discreet.maths.cells.keys import record_keys
from discreet.maths.cells.permutation import no_permutation
from discreet.population.encode import hashed_ids
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.tabulate.tables import ConfidentialTable

PERSONS = 10_000_000
CELLS = 5_000_000
SAMPLE = 20  # the loop hashes every so manieth id, and its time is multiplied


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    lines: list[Line] = []
    for kind in ("integer", "text"):
        work = f"{persons:,} {kind} ids"
        ours = measured("keys", "kernel", repeats, ids=persons, kind=kind)
        sample = measured("keys", "loop", repeats, ids=persons // SAMPLE, kind=kind)
        theirs = Cost(sample.cpu * SAMPLE, sample.wall * SAMPLE, sample.peak)
        lines += [
            Line(work, "Discreet: SipHash-2-4 kernel", ours),
            against(work, "BLAKE2b in a Python loop", ours, theirs),
        ]
    note = f"The loop hashed one id in {SAMPLE}; its times are multiplied by {SAMPLE}."
    return [Section("Record keys", tuple(lines), (note,)), _cell_keys(repeats)]


def _cell_keys(repeats: int) -> Section:
    work = f"{CELLS:,} cells"
    permuted = measured("keys", "perturbed", repeats, cells=CELLS, permute=True)
    plain = measured("keys", "perturbed", repeats, cells=CELLS, permute=False)
    lines = (
        Line(work, "Discreet: permuted keys", permuted),
        against(work, "Discreet: plain sums of keys", permuted, plain),
    )
    return Section(
        "Noise by cell keys", lines, ("The kernel of one table, all cells occupied, D = 5 and V = 2.",)
    )


def _ids(count: int, kind: str) -> pa.Array:
    numbers = pa.array(np.random.default_rng(2).permutation(count) + 10**11)
    if kind == "integer":
        return numbers
    return pa.array([f"person-{number}" for number in numbers.to_pylist()])


def kernel(watch: Stopwatch, ids: int, kind: str) -> None:
    column = _ids(ids, kind)
    record_keys(hashed_ids(column[:10], SECRET, "keys"))  # loads the compiled kernel
    with watch.running():
        for start in range(0, ids, BATCH):
            record_keys(hashed_ids(column[start : start + BATCH], SECRET, "keys"))


def perturbed(watch: Stopwatch, cells: int, permute: bool) -> None:
    generator = np.random.default_rng(3)
    keys = generator.integers(0, 2**32, cells, dtype=np.uint64) << np.uint64(32)
    tree = codelist("X", [Code("x", "", "")])
    cube = Cube("cells", "persons", (breakdown("X", "X", tree, tree.leaves),))
    counted = keys | generator.integers(1, 2000, cells, dtype=np.uint64)
    mechanism = noise()
    if not permute:
        mechanism = replace(mechanism, permutation=no_permutation())
    few = slice(10)
    mechanism.perturb(ConfidentialTable(cube, counted[few], np.arange(10)))  # loads the compiled kernel
    table = ConfidentialTable(cube, counted, np.arange(cells))
    with watch.running():
        mechanism.perturb(table)


def loop(watch: Stopwatch, ids: int, kind: str) -> None:
    texts = [str(value).encode() for value in _ids(ids, kind).to_pylist()]
    with watch.running():
        for text in texts:
            int.from_bytes(hashlib.blake2b(text, digest_size=4, key=SECRET).digest(), "little")
