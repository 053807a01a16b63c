"""No result depends on memory that was not set: tests pass where all new memory holds huge numbers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HUGE = 0x80  # the C library fills what it allocates with the complement: 0x7f7f... is 1e306
LONG = ("maths", "hierarchy", "perturb", "tabulate", "population", "swap", "advise", "audit", "pipeline")


@pytest.mark.parametrize(
    "part",
    ["maths/tree/test_shares.py", *(pytest.param(one, marks=pytest.mark.long) for one in LONG)],
)
@pytest.mark.skipif(sys.platform != "linux", reason="a setting of the C library of Linux")
def test_it_passes_with_huge_numbers_in_new_memory(part: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{part}"]
    filled = {**os.environ, "MALLOC_PERTURB_": str(HUGE), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=filled, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
