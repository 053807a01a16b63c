from pathlib import Path

import numpy as np

from discreet.audit.case import true_counts
from discreet.audit.evidence import published, values_at
from discreet.perturb.choose import mechanism
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.run.run import Run
from tests.pipeline.conftest import SECRET, run


def test_the_truth_lies_within_the_noise_of_the_release(census: Path, tmp_path: Path) -> None:
    run(census, tmp_path / "release")
    programme = load_programme(census / "programme.toml")
    noise = mechanism(programme, SECRET, SECRET)
    truth = true_counts(Run(programme=programme, secret=SECRET, mechanism=noise), programme.cubes)
    assert not truth.is_swapped
    assert repr(truth) == f"Truth({len(programme.cubes)} cubes)"
    tables = [
        table
        for universe in published(open_release(tmp_path / "release")).universes
        for table in universe.tables
    ]
    assert sorted(table.id for table in tables) == sorted(cube.id for cube in programme.cubes)
    for table in tables:
        cells, values = table.load()
        change = values - values_at(truth.counted[table.id], cells)
        assert np.abs(change).max() <= noise.noise().bound
        assert 0 < np.var(change) < 3
