"""Every example by the name of its page; it runs none."""

from __future__ import annotations

from examples import (
    bach_2020,
    kazan_reiter_2022,
    rinott_2018,
    soria_comas_drechsler_2013,
    statistics_netherlands_2022,
)
from examples.running import Example

EXAMPLES: tuple[Example, ...] = (
    bach_2020.EXAMPLE,
    kazan_reiter_2022.EXAMPLE,
    rinott_2018.EXAMPLE,
    soria_comas_drechsler_2013.EXAMPLE,
    statistics_netherlands_2022.EXAMPLE,
)
