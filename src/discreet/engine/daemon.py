"""The process that Spark forks its Python workers from, with all that tasks use loaded once and shared by them.

Spark's own daemon loads nothing: every worker then compiles pyspark from an archive and loads this package and its
libraries again, which costs two seconds and 0.4 GB each. On one machine a session names this module in
``spark.python.daemon.module``; on a cluster an office can, where the package is installed on all nodes.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
from pathlib import Path

MODULES = "DISCREET_MODULES"  # of the environment: what the driver has loaded
_NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # a process with threads must not be forked


def loaded_here() -> str:
    """The modules of this package that this process has loaded, for the daemon of its workers."""
    return ",".join(sorted(name for name in sys.modules if name.startswith("discreet.")))


def prepare() -> None:
    """Load what tasks use, and exempt it from the collection of garbage, which Spark runs after each task."""
    os.environ.update(_NO_THREADS)
    _without_archives()
    for name in (*os.environ.get(MODULES, "").split(","), "discreet.engine.tasks", "pyspark.worker"):
        if name:
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _without_archives() -> None:
    """Read pyspark from the folder where it is installed, compiled, if it is; Spark names its archives first."""
    others = [path for path in sys.path if Path(path).name not in _archives()]
    if any((Path(path) / "pyspark").is_dir() for path in others):
        sys.path[:] = others
        sys.path_importer_cache.clear()


def _archives() -> set[str]:
    names = {Path(path).name for path in sys.path}
    return {name for name in names if name == "pyspark.zip" or re.fullmatch(r"py4j-.*-src\.zip", name)}


if __name__ == "__main__":
    prepare()
    from pyspark.daemon import manager

    manager()
