"""What clients of PxWebApi may send, as the OpenAPI document tells it; what the names in it mean is found elsewhere."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from discreet.serve.http.bodies import Codes, Name
from discreet.serve.http.pxweb_select import CODELIST, Picked, once, wrong
from discreet.serve.http.pxweb_shape import JSON_STAT, Asked, asked_of

LOOSE = ConfigDict(extra="ignore")  # clients of several generations send more than is read


class VariableBody(BaseModel):
    """What is selected of one variable."""

    model_config = LOOSE

    variableCode: Name  # noqa: N815 - the standard's name
    valueCodes: Codes | None = None  # noqa: N815
    codelist: Name | None = None
    codeList: Name | None = None  # noqa: N815 - as earlier clients spell it

    def picked(self) -> Picked:
        """What is selected."""
        return Picked(tuple(self.valueCodes or ()), self.codelist or self.codeList or "")


class PlacementBody(BaseModel):
    """Which variables go across and which down."""

    model_config = LOOSE

    heading: list[Name] | None = None
    stub: list[Name] | None = None


class SelectionBody(BaseModel):
    """A selection; an empty one asks for the default."""

    model_config = LOOSE

    selection: list[VariableBody] | None = Field(default=None, max_length=100)
    placement: PlacementBody | None = None

    def picked(self) -> dict[str, Picked]:
        """What is selected of each variable."""
        return once((one.variableCode, one.picked()) for one in self.selection or ())

    def asked(self, form: str, parameters: list[str] | None) -> Asked:
        """The shape that is asked for."""
        placement = self.placement or PlacementBody()
        return asked_of(form, parameters, placement.heading, placement.stub)


class SavedBody(BaseModel):
    """A saved query of PxWebApi."""

    model_config = LOOSE

    tableId: Name  # noqa: N815
    selection: SelectionBody = SelectionBody()
    language: Name | None = None
    outputFormat: Name | None = None  # noqa: N815
    outputFormatParams: list[Name] | None = None  # noqa: N815

    def asked(self) -> Asked:
        """The shape that was asked for when it was saved."""
        return self.selection.asked(self.outputFormat or JSON_STAT, self.outputFormatParams)


class FilterBody(BaseModel):
    """What PxWebApi 1 selects of a variable: a kind of filter and its values."""

    model_config = LOOSE

    filter: Name = "item"
    values: Codes = []

    def picked(self, variable: str) -> Picked:
        """The same as PxWebApi 2 selects it; only the filter ``all`` has patterns."""
        kind, _, name = self.filter.partition(":")
        match kind.strip().lower():
            case "all":
                return Picked(tuple(self.values) or ("*",))
            case "top":
                return Picked((f"TOP({self.values[0] if self.values else ''})",))
            case "item" | "vs" | "agg":
                codelist = CODELIST + name.strip().removeprefix(CODELIST) if name else ""
                return Picked(tuple(self.values), codelist, literal=True)
        raise wrong(
            variable,
            f"has the filter {self.filter[:60]!r}",
            "write item, all, top, vs:CODELIST or agg:CODELIST",
        )


class QueryItemBody(BaseModel):
    """One variable of a query of PxWebApi 1."""

    model_config = LOOSE

    code: Name
    selection: FilterBody = FilterBody()


class ResponseBody(BaseModel):
    """The format that PxWebApi 1 is asked for."""

    model_config = LOOSE

    format: Name = "json"


class TableQueryBody(BaseModel):
    """A query of PxWebApi 1; an empty one asks for the default."""

    model_config = LOOSE

    query: list[QueryItemBody] = Field(default=[], max_length=100)
    response: ResponseBody = ResponseBody()

    def picked(self) -> dict[str, Picked]:
        """What is selected of each variable."""
        return once((one.code, one.selection.picked(one.code)) for one in self.query)
