"""The process in which one piece of work is measured: ``python -m benchmarks.process SUBJECT WORK ARGUMENTS``."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from benchmarks.costs import Stopwatch, peak_of_this_process


def main(subject: str, work: str, arguments: str) -> None:
    watch = Stopwatch()
    facts = getattr(import_module(f"benchmarks.{subject}"), work)(watch, **json.loads(arguments))
    peak = (facts or {}).pop("peak", None) or peak_of_this_process()
    print(json.dumps({"cpu": watch.cpu, "wall": watch.wall, "peak": peak, "facts": facts or {}}))


if __name__ == "__main__":
    main(*sys.argv[1:4])
