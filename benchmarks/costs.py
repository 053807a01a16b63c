"""What work costs: CPU time, wall time and peak memory, each measured in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GB = 1e9
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Cost:
    """The cost of one piece of work; ``facts`` are what else its process told."""

    cpu: float
    wall: float
    peak: float  # GB, of the whole process, loaded data and libraries included
    facts: dict[str, Any] = field(default_factory=dict)


class Stopwatch:
    """Adds up the time spent inside ``running``: user and system time of all threads of this process."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure what happens inside."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall

    @contextmanager
    def commands(self) -> Iterator[None]:
        """Measure the commands that are run and awaited inside."""
        before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        yield
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu += after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        self.wall += time.perf_counter() - wall


def peak_of_this_process() -> float:
    """The most memory this process ever had, in GB.

    Linux keeps in ru_maxrss what the parent had when it forked, so the process's own mark is read where it exists.
    """
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / GB
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / GB


def peak_of_commands() -> float:
    """The most memory that any awaited command had, in GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / GB


def measured(subject: str, work: str, times: int = 1, **arguments: Any) -> Cost:
    """Run ``benchmarks.<subject>.<work>`` in new processes and return the cheapest run."""
    runs = [_once(subject, work, arguments) for _ in range(times)]
    return min(runs, key=lambda cost: cost.cpu)


def _once(subject: str, work: str, arguments: dict[str, Any]) -> Cost:
    command = [sys.executable, "-m", "benchmarks.process", subject, work, json.dumps(arguments)]
    # an installed package has its bytecode; without it every start would compile two hundred modules
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=own)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))
