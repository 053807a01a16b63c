"""SDMX REST routes (2.1 and 3.0): structures, schemas, data and availability."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from discreet.formats.dataset import Sink
from discreet.formats.sdmx_data import (
    V2_1,
    V3_0,
    Detail,
    Observations,
    write_csv_1,
    write_csv_2,
    write_generic,
    write_json_1,
    write_json_2,
    write_specific,
)
from discreet.serve.answer import Answer
from discreet.serve.http.downloads import File, file_cache
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.respond import SHARED, send
from discreet.serve.http.security import Caller
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.serve.open import TableBuilder
from discreet.serve.sdmx import negotiation as media
from discreet.serve.sdmx.addresses import (
    CONTEXTS,
    components_of,
    data_address,
    detail_of,
    flow_of,
    number_of,
    parts_of,
    query_of,
)
from discreet.serve.sdmx.negotiation import SdmxRoute
from discreet.serve.sdmx.observations import keys_without_values, observations
from discreet.serve.sdmx.registry import Flow, Kind, Pick, Registry, dimension_at, pick
from discreet.serve.sdmx.structures import (
    ALL_KINDS,
    OTHER_KINDS,
    StructureRequest,
    constraint,
    select,
    with_references,
    write_structures,
)
from discreet.text.phrase import phrase

_ROWS: dict[media.Media, Callable[[Observations, Sink], None]] = {
    media.CSV_2: write_csv_2,
    media.CSV_1: write_csv_1,
}
_NESTED: dict[media.Media, Callable[[Observations, Sink, str], None]] = {
    media.GENERIC: write_generic,
    media.SPECIFIC: partial(write_specific, version=V2_1),
    media.DATA_3_0: partial(write_specific, version=V3_0),
    media.JSON_2: write_json_2,
    media.JSON_1: write_json_1,
}


@dataclass(frozen=True)
class Writing:
    """How observations are requested: equal ones write equal bytes."""

    media: media.Media
    detail: Detail
    at: str  # the dimension at the observation, empty for all
    number: int  # of observations of a series, 0 for all, negative for the last ones

    def write(self, found: Observations) -> File:
        """The file."""
        if self.at and self.number:
            found = found.with_last(self.at).first(self.number)
        body = io.BytesIO()
        if self.media in _ROWS:
            _ROWS[self.media](found, body)
        else:
            _NESTED[self.media](found, body, self._at(found))
        return File(body.getvalue(), self.media.text, self.media.ending)

    def _at(self, found: Observations) -> str:
        """The dimension at the observation; keys are written as series, which leaves the last one to observations."""
        return self.at or (found.dimensions[-1] if self.detail is Detail.KEYS else "")


def writing_of(flow: Flow, accept: str, parameters: Mapping[str, str]) -> Writing:
    """Read how observations are requested, before anything is asked or charged."""
    at = dimension_at(flow, parameters.get("dimensionAtObservation", ""))
    return Writing(
        media.wanted(accept, media.DATA),
        detail_of(parameters),
        at.id if at else "",
        number_of(parameters),
    )


PREFIX = "/sdmx"
FORM = "application/x-www-form-urlencoded"
CACHED = 64 << 20  # bytes of structure messages
BODY = "body"  # replaces the key where it is sent in the body

Parameters = Iterable[tuple[str, str]]
RestOf = Annotated[str, Path(description="The rest of the address, as SDMX REST has it.")]
_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"description": message, "content": {media.XML: {}, "application/problem+json": {}}}
    for code, message in {
        400: "Syntax error",
        404: "No results",
        406: "Not acceptable",
        413: "Too large",
        415: "Unsupported media type",
        422: "Refused by a rule of the office",
    }.items()
}


def router(builder: TableBuilder) -> APIRouter:
    """The routes over a table builder."""
    served = SdmxRoutes(Registry(builder.catalogue))
    made = APIRouter(prefix=PREFIX, tags=["SDMX REST"], route_class=SdmxRoute, responses=_ERRORS)
    data = {"content": {one.text: {} for one in media.DATA}, "description": "Observations"}
    described = {"content": {one.text: {} for one in media.STRUCTURES_3_0}, "description": "Structures"}
    structures: list[tuple[str, Callable[..., Any]]] = [
        ("/availability/{rest:path}", served.availability_3_0),
        ("/availableconstraint/{rest:path}", served.availability_2_1),
        ("/schema/{rest:path}", served.schema),
        ("/structure", served.all_structures),
        ("/structure/{rest:path}", served.structures_3_0),
        ("/{kind}", served.all_of_kind),
        ("/{kind}/{rest:path}", served.structures_2_1),
    ]
    made.add_api_route("/data", served.data_of_nothing, methods=["GET"], responses={200: data})
    made.add_api_route("/data/{rest:path}", served.data, methods=["GET"], responses={200: data})
    made.add_api_route("/data/{rest:path}", served.data_by_post, methods=["POST"], responses={200: data})
    for path, endpoint in structures:
        made.add_api_route(path, endpoint, methods=["GET"], responses={200: described})
    return made


class SdmxRoutes:
    """The endpoints."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self._files = registry, file_cache(CACHED)

    async def data(self, request: Request, service: ServiceOf, caller: CallerOf, rest: RestOf) -> Response:
        """Observations of a dataflow: ``DF_ID/KEY`` (2.1) or ``dataflow/AGENCY/DF_ID/VERSION/KEY`` (3.0)."""
        return await self._data(request, service, caller, rest, request.query_params.multi_items())

    async def data_of_nothing(self, request: Request, service: ServiceOf, caller: CallerOf) -> Response:
        """Observations of the only dataflow; a problem where there are several."""
        return await self.data(request, service, caller, "")

    async def data_by_post(
        self, request: Request, service: ServiceOf, caller: CallerOf, rest: RestOf
    ) -> Response:
        """The same with ``body`` for the key, and the key as a form in the body: for keys too long for an address."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise HttpProblem(415, phrase("Send the key as {form}: key=...", form=FORM))
        text = (await request.body()).decode("utf-8", "replace")
        form = parse_qsl(text, keep_blank_values=True)
        return await self._data(request, service, caller, rest, [*request.query_params.multi_items(), *form])

    async def availability_3_0(self, request: Request, service: ServiceOf, rest: RestOf) -> Response:
        """Which codes of ``dataflow/AGENCY/DF_ID/VERSION/KEY/COMPONENT`` have observations."""
        make = partial(self._availability, request, rest, media.STRUCTURES_3_0)
        return await service.pool.run(make)

    async def availability_2_1(self, request: Request, service: ServiceOf, rest: RestOf) -> Response:
        """Which codes of ``DF_ID/KEY/PROVIDER/COMPONENT`` have observations."""
        make = partial(self._availability, request, rest, media.STRUCTURES_2_1)
        return await service.pool.run(make)

    async def schema(self, request: Request, service: ServiceOf, rest: RestOf) -> Response:
        """The structures of the data of ``dataflow/AGENCY/DF_ID/VERSION``."""
        return await service.pool.run(partial(self._schema, request, rest))

    async def all_structures(self, request: Request, service: ServiceOf) -> Response:
        """All structures."""
        return await self._structures(request, service, ["*"], media.STRUCTURES_3_0)

    async def structures_3_0(self, request: Request, service: ServiceOf, rest: RestOf) -> Response:
        """Structures: ``KIND/AGENCY/ID/VERSION/ITEM`` (3.0), or ``AGENCY/ID/VERSION`` of any kind (2.1)."""
        parts = parts_of(rest) or ["*"]
        if parts[0] in {*Kind, *OTHER_KINDS, *ALL_KINDS}:
            return await self._structures(request, service, parts, media.STRUCTURES_3_0)
        return await self._structures(request, service, ["structure", *parts], media.STRUCTURES_2_1)

    async def all_of_kind(self, request: Request, service: ServiceOf, kind: str) -> Response:
        """All structures of a kind, such as ``dataflow``."""
        return await self._structures(request, service, [kind], media.STRUCTURES_2_1)

    async def structures_2_1(self, request: Request, service: ServiceOf, kind: str, rest: RestOf) -> Response:
        """Structures of a kind: ``AGENCY/ID/VERSION/ITEM``."""
        return await self._structures(request, service, [kind, *parts_of(rest)], media.STRUCTURES_2_1)

    async def _data(
        self, request: Request, service: Service, caller: Caller, rest: str, given: Parameters
    ) -> Response:
        parameters = dict(given)
        address = data_address(rest, self._registry.agency)
        flow = flow_of(self._registry, address)
        picked = pick(flow, parameters.get("key", "*") if address.key == BODY else address.key, given)
        writing = writing_of(flow, _accept(request), parameters)
        if writing.detail is Detail.KEYS:
            _check_size(service, picked)
            return send(
                request, await service.pool.run(lambda: writing.write(keys_without_values(flow, picked)))
            )

        def write(answer: Answer) -> File:
            return writing.write(observations(flow, picked, answer, writing.detail, service.catalogue))

        way = ("sdmx", flow.id, picked, writing)
        return send(request, await service.file(caller, query_of(flow, picked), way, write))

    def _availability(self, request: Request, rest: str, offered: Sequence[media.Media]) -> Response:
        wanted = media.wanted(_accept(request), offered)
        parameters = request.query_params
        address = data_address(rest, self._registry.agency)
        flow = flow_of(self._registry, address)
        picked = pick(flow, address.key, parameters.multi_items())
        components = components_of(flow, address.component)
        made = constraint(flow, picked, components, parameters.get("mode", "exact"))
        further = with_references(self._registry, flow, parameters.get("references", "none"))
        return send(request, self._file([*further, made], wanted), cache=SHARED)

    def _schema(self, request: Request, rest: str) -> Response:
        wanted = media.wanted(_accept(request), media.STRUCTURES_3_0)
        parts = parts_of(rest)
        if not parts or parts[0] not in CONTEXTS or len(parts) > 4:
            raise _wrong_address("schema/dataflow/AGENCY/ID/VERSION")
        flow = flow_of(self._registry, data_address("/".join(parts), self._registry.agency))
        asked = StructureRequest(Kind.STRUCTURE, id=flow.structure, references="children")
        return self._cached(request, asked, wanted)

    async def _structures(
        self, request: Request, service: Service, parts: list[str], offered: Sequence[media.Media]
    ) -> Response:
        if len(parts) > 5:
            raise _wrong_address("KIND/AGENCY/ID/VERSION/ITEM")
        given = request.query_params
        named = StructureRequest(*parts)
        asked = replace(named, references=given.get("references", "none"), detail=given.get("detail", "full"))
        wanted = media.wanted(_accept(request), offered)
        return await service.pool.run(lambda: self._cached(request, asked, wanted))

    def _cached(self, request: Request, asked: StructureRequest, wanted: media.Media) -> Response:
        """Structures never change while a server runs, and those of many areas take seconds to write."""
        file = self._files.get((asked, wanted))
        if file is None:
            file = self._file(select(self._registry, asked), wanted)
            self._files.put((asked, wanted), file)
        return send(request, file, cache=SHARED)

    def _file(self, artefacts: Sequence[Any], wanted: media.Media) -> File:
        own = self._registry
        return File(write_structures(artefacts, wanted, own.agency, own.language), wanted.text, wanted.ending)


def _check_size(service: Service, picked: Pick) -> None:
    """Keys cost no question, but as much to write as an answer."""
    if picked.cells > service.catalogue.rule.cells:
        message = phrase("An answer may have {most} observations.", most=service.catalogue.rule.cells)
        raise HttpProblem(413, message)


def _wrong_address(right: str) -> HttpProblem:
    return HttpProblem(400, phrase("Write {address}.", address=right), kind="address")


def _accept(request: Request) -> str:
    return ",".join(request.headers.getlist("accept"))
