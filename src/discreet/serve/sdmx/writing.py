"""How observations are written for one request: format, detail, dimension at the observation; it reads no address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from discreet.serve.http.downloads import File
from discreet.serve.sdmx import media
from discreet.serve.sdmx.addresses import detail_of, number_of
from discreet.serve.sdmx.data_csv import write_csv_1, write_csv_2
from discreet.serve.sdmx.data_json import write_json_1, write_json_2
from discreet.serve.sdmx.data_xml import V2_1, V3_0, write_generic, write_specific
from discreet.serve.sdmx.keys import dimension_at
from discreet.serve.sdmx.observations import Detail, Observations
from discreet.serve.sdmx.registry import Dimension, Flow

_ROWS: dict[media.Media, Callable[[Observations], bytes]] = {
    media.CSV_2: write_csv_2,
    media.CSV_1: write_csv_1,
}
_NESTED: dict[media.Media, Callable[[Observations, Dimension | None], bytes]] = {
    media.GENERIC: write_generic,
    media.SPECIFIC: partial(write_specific, version=V2_1),
    media.DATA_3_0: partial(write_specific, version=V3_0),
    media.JSON_2: write_json_2,
    media.JSON_1: write_json_1,
}


@dataclass(frozen=True)
class Writing:
    """What a client wants: equal ones write equal bytes."""

    media: media.Media
    detail: Detail
    at: str  # the dimension at the observation, empty for all
    number: int  # of observations of a series, 0 for all, negative for the last ones

    def write(self, found: Observations) -> File:
        """The file."""
        at = dimension_at(found.flow, self.at)
        if at is not None and self.number:
            found = found.with_last(at).first(self.number)
        return File(self._body(found, at), self.media.text, self.media.ending)

    def _body(self, found: Observations, at: Dimension | None) -> bytes:
        if self.media in _ROWS:
            return _ROWS[self.media](found)
        if at is None and self.detail is Detail.KEYS:
            at = found.flow.dimensions[-1]  # keys are told as series: one dimension is left to observations
        return _NESTED[self.media](found, at)


def writing_of(flow: Flow, accept: str, parameters: Mapping[str, str]) -> Writing:
    """Read what a client wants; it is settled before anything is asked, and so before anything is charged."""
    at = dimension_at(flow, parameters.get("dimensionAtObservation", ""))
    return Writing(
        media.wanted(accept, media.DATA),
        detail_of(parameters),
        at.id if at else "",
        number_of(parameters),
    )
