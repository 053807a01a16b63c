"""The notebooks run from their first to their last cell, on small data."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.py"))
QUICK = {"analysis_with_noise", "first_protected_table", "swapping_households"}


def test_there_are_six() -> None:
    assert len(NOTEBOOKS) == 6
    index = (NOTEBOOKS[0].parent / "index.md").read_text(encoding="utf-8")
    assert all(path.name in index for path in NOTEBOOKS)


@pytest.mark.parametrize(
    "path",
    [path if path.stem in QUICK else pytest.param(path, marks=pytest.mark.long) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    cells = text.split("# %%")
    assert len(cells) > 5
    exec(compile(text, str(path), "exec"), {"__name__": "notebook"})
