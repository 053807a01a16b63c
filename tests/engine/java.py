"""Whether Spark can be tested here."""

import pytest

from discreet.engine.session import require_spark
from discreet.errors import Mistakes

NO_SPARK = "SPARK IS NOT TESTED HERE"


def require_java() -> None:
    """Skip a test where pyspark or a Java runtime of version 17 or newer is missing."""
    try:
        require_spark()
    except Mistakes as missing:
        pytest.skip(f"{NO_SPARK}: {missing} (.ci/system-packages installs Java)")
