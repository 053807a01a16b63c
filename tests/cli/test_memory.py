"""Commands that end soon keep the memory that they free; a server returns it."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PAGES = """
import resource
import numpy as np
from discreet.cli.group import built

built({name!r}, {name!r})
np.ones(1 << 23)  # 64 MB, written and freed
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    np.ones(1 << 23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def new_pages(name: str) -> int:
    """How many pages five large arrays need, one after the other, in a process of a command."""
    script = PAGES.format(name=name)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator has these settings")
def test_a_command_uses_freed_memory_again() -> None:
    assert new_pages("verify") < 100 < new_pages("serve")
