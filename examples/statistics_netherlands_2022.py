"""Statistics Netherlands (2022), Perturbative methods for census 2021 tables within the European framework.

It checks what the note says of both methods and tries their combination on a synthetic census; the note prints no
results, and its own assessment was made on a population that is not public.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.synth import generate
from examples.claims import Claim, exact, rounding_error, unprinted
from examples.running import Example, Replication, Size, main
from examples.statistics_netherlands_2022_charts import charts
from examples.statistics_netherlands_2022_trials import Combined, Grid, combined, grid_differences

DATA = "their population of 2017 is not public; a synthetic census instead"


def replicate(size: Size) -> Replication:
    """Check the rules, then protect a census in every way; sizes differ in its persons."""
    persons = 300_000 if size is Size.FULL else 12_000
    with tempfile.TemporaryDirectory(prefix="discreet-example-") as folder:
        census = Path(folder) / "census"
        generate(persons, 5, census, tables=("1",), threads=1)
        found = [combined(census, V) for V in (2.0, 3.0)]
        grid = grid_differences(census, 2.0)
    claims = [*_cell_key(), *_swapping(found[0]), *_together(found), *_grid(grid)]
    return Replication(claims, charts(found))


def _cell_key() -> Iterator[Claim]:
    """Paragraphs 35 to 37."""
    plain, gap = (PTableLaw(solve(PTableParameters(5, 2.0 + js, js))) for js in (0, 2))
    counts = range(1, 12)
    mean = max(abs(plain.row(count).mean - count) for count in counts)
    yield exact("paragraph 36", "largest bias of a count, V = 2, D = 5", "0.000000", rounding_error(mean))
    least = min(plain.row(count).first for count in counts)
    yield exact("paragraph 36", "least published count", "0", least)
    yield exact("paragraph 36", "probability that an empty cell stays empty", "1", plain.row(0).at(0))
    widest = max(int(abs(plain.row(count).values - count).max()) for count in counts)
    yield exact("paragraph 35", "largest change, D = 5", "5", widest)
    positive = min(
        value
        for count in counts
        for value in gap.row(count).values.tolist()
        if value > 0 and gap.row(count).at(value) > 0
    )
    yield exact("paragraph 37", "least positive published count, js = 2", "3", positive)


def _swapping(found: Combined) -> Iterator[Claim]:
    """Paragraphs 27, 28 and 45: rate 1 %, and everybody at risk."""
    yield exact("paragraph 28", "households at risk with a donor that stayed", "0", found.left_though_donor)
    why = f"at least 1 % is required; the small areas put more at risk; {DATA}"
    yield unprinted("paragraph 45", "households swapped, %", 100 * found.swapped, why, of_size=True)
    yield unprinted(
        "paragraph 28",
        "apparent uniques that are the same person, municipalities, %",
        100 * found.same_persons,
        DATA,
        of_size=True,
    )


def _together(found: list[Combined]) -> Iterator[Claim]:
    """Paragraphs 45 and 46: what each method leaves, and what both do."""
    for one in found:
        for name, result in one.results.items():
            what = f"V = {one.V:g}, {name}: published ones that are true, %; mean absolute error of a cell"
            yield unprinted(
                "paragraphs 45, 46", what, (100 * result.true_ones, result.l1), DATA, of_size=True, digits=3
            )


def _grid(grid: Grid) -> Iterator[Claim]:
    """Paragraph 44: grid squares against municipalities."""
    what = "differences of grid and municipality below 50 persons; expected right after noise, V = 2"
    yield unprinted("paragraph 44", what, (grid.differences, grid.right), DATA, of_size=True)


EXAMPLE = Example(
    "statistics-netherlands-2022",
    "Statistics Netherlands (2022), Record swapping and the cell key method",
    replicate,
)

if __name__ == "__main__":
    raise SystemExit(main(EXAMPLE))
