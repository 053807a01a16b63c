"""The small synthetic census that the whole path is tested on."""

from tests.pipeline.conftest import census

__all__ = ["census"]
