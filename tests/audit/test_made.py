import numpy as np

from discreet.audit.evidence import values_at
from tests.audit.made import cell_key, flat, made, nested, random_columns


def test_a_made_release_is_within_its_noise_of_the_truth() -> None:
    trees = [nested("GEO", 3, 4), flat("SEX", 2), flat("AGE", 5)]
    mechanism, known = cell_key(2.0, 5)
    world = made(
        trees, [["GEO", "SEX"], ["GEO", "SEX", "AGE"]], random_columns(trees, 500, 1), mechanism, known, 2
    )
    for table in world.published.universes[0].tables:
        cells, values = table.load()
        change = values - values_at(world.truth.counted[table.id], cells)
        assert np.abs(change).max() <= 5
        assert (change != 0).any()
    assert values_at(world.truth.counted["GEOxSEX"], np.zeros(1, dtype=np.int64)).tolist() == [500]
