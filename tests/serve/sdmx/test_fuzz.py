"""Whatever stands in an address is answered, never with an error of the server's own; parts fit the whole."""

from urllib.parse import quote

from httpx import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.serve.open import TableBuilder
from discreet.serve.sdmx.addresses import query_of
from discreet.serve.sdmx.registry import Registry, pick

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
words = st.sampled_from(
    ["data", "availability", "availableconstraint", "schema", "structure", "dataflow", "datastructure", "codelist",
     "*", "all", "CENSUS", "DF_wide", "DF_1_1", "DSD_wide", "1.0", "+", "~", "latest", "_T._T._T", "._T.Y0", "body",
     "_T.1.Y0,_T.2.Y1", "SEX", "...", "%00", "%2F", ""]
)  # fmt: skip
parts = words | st.text(max_size=12).map(lambda text: quote(text, safe=""))
parameters = st.dictionaries(
    st.sampled_from(
        ["references", "detail", "mode", "c[SEX]", "c[GEO]", "c[]", "dimensionAtObservation", "firstNObservations",
         "lastNObservations", "attributes", "measures", "key"]
    ),
    st.sampled_from(["all", "none", "exact", "SEX", "1", "ne:1", "ge:1+le:2", "99999999999999999999", "serieskeysonly"])
    | st.text(max_size=12),
    max_size=3,
)  # fmt: skip
accepts = st.sampled_from(
    [
        "*/*",
        "application/json",
        "text/csv",
        "application/vnd.sdmx.structurespecificdata+xml;version=2.1",
        "a/b;;=,",
    ]
)


@given(
    path=st.lists(parts, max_size=7).filter(lambda path: path[:1] != [""]),
    asked=parameters,
    accept=accepts,
    is_post=st.booleans(),
)
@QUICK
def test_no_address_makes_the_server_fail(
    rest: Client, path: list[str], asked: dict[str, str], accept: str, is_post: bool
) -> None:
    address = "/" + "/".join(path)
    head = {"Accept": accept}
    answer = (
        rest.post(address, data=asked, headers=head)
        if is_post
        else rest.get(address, params=asked, headers=head)
    )
    assert answer.status_code < 500, (address, asked, answer.text)


@given(data=st.data())
@QUICK
def test_a_pick_is_the_union_of_its_keys(builder: TableBuilder, data: st.DataObject) -> None:
    flow = Registry(builder.catalogue).flows["DF_adults"]
    lists = [list(dimension.codes) for dimension in flow.dimensions]
    one_key = st.tuples(*(st.sets(st.sampled_from(codes), max_size=3) for codes in lists))
    keys = data.draw(st.lists(one_key, min_size=1, max_size=4))
    found = pick(flow, ",".join(".".join("+".join(sorted(said)) for said in key) for key in keys), [])
    wanted = [[said or set(codes) for said, codes in zip(key, lists, strict=True)] for key in keys]
    cells = {
        (a, b, c)
        for a in found.codes[0]
        for b in found.codes[1]
        for c in found.codes[2]
        if any(a in key[0] and b in key[1] and c in key[2] for key in wanted)
    }
    assert found.cells == len(cells) == found.inside.sum()
    assert len(query_of(flow, found).axes) == 3
