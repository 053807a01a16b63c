"""The style of pages and charts: colours of both modes, layout, print; and the script that sorts tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

INK, FAINT, GRID = "#1b2733", "#55616d", "#dfe4e9"
BLUE, ORANGE, GREY, RED, TINT = "#1f5a94", "#b85c00", "#aeb7c0", "#b3261e", "#cfe0f1"
GREEN, PURPLE, PAPER = "#1e6e42", "#6b4fa0", "#ffffff"
FEASIBLE, RISKY, LOSSY, SPOILT, PALE, LILAC = "#a9d8b8", "#f4c7c3", "#f7ddb5", "#d9b8ae", "#eef1f4", "#d5c8e8"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, FAINT, RED)  # of lines without a fixed colour

# colours of charts on a dark background
DARK: Mapping[str, str] = MappingProxyType(
    {
        INK: "#e8edf2",
        FAINT: "#a9b4bf",
        GRID: "#35414d",
        BLUE: "#6fb0ee",
        ORANGE: "#f0a050",
        GREY: "#66727e",
        RED: "#ff8a80",
        TINT: "#2c4660",
        GREEN: "#6fcf97",
        PURPLE: "#b79cf0",
        PAPER: "#12181f",
        FEASIBLE: "#2b7a4b",
        RISKY: "#6e3431",
        LOSSY: "#6b4f22",
        SPOILT: "#4a2f28",
        PALE: "#3a4652",
        LILAC: "#4c3f66",
        "white": "transparent",
    }
)


def _dark_charts() -> str:
    rules = [
        f'figure svg [{kind}="{light}"] {{ {kind}: {dark}; }}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    ]
    return "\n".join(rules)


STYLE = f"""
:root {{
  color-scheme: light dark;
  --paper: {PAPER}; --panel: #f4f6f8; --ink: {INK}; --faint: {FAINT}; --line: {GRID};
  --blue: {BLUE}; --red: {RED}; --green: {GREEN}; --private: #fdecea; --open: #e9f3ec; --amber: #8a5200;
}}
* {{ box-sizing: border-box; }}
html {{ scroll-behavior: smooth; scroll-padding-top: 1rem; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; -webkit-text-size-adjust: 100%; }}
a {{ color: var(--blue); }}
:focus-visible {{ outline: 3px solid var(--blue); outline-offset: 2px; border-radius: 2px; }}
.skip {{ position: absolute; left: -999rem; top: 0; background: var(--paper); padding: .6rem 1rem; z-index: 2; }}
.skip:focus {{ left: 0; }}
.notice {{ padding: .7rem 1.25rem; font-size: .95rem; border-bottom: 1px solid var(--line); }}
.notice p {{ max-width: 74rem; margin: 0 auto; }}
.notice.private {{ background: var(--private); border-left: .4rem solid var(--red); }}
.notice.open {{ background: var(--open); border-left: .4rem solid var(--green); }}
.frame {{ max-width: 76rem; margin: 0 auto; padding: 0 1.25rem 4rem; display: grid; gap: 0 3.5rem;
  grid-template-columns: minmax(0, 1fr); }}
header h1 {{ font-size: clamp(1.6rem, 4.5vw, 2.3rem); line-height: 1.2; margin: 2rem 0 .4rem; text-wrap: balance; }}
header p.under {{ color: var(--faint); margin: 0 0 1.2rem; max-width: 46rem; }}
nav ol {{ list-style: none; margin: 0; padding: 0; font-size: .93rem; }}
nav h2 {{ font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; color: var(--faint); margin: 0 0 .5rem; }}
nav a {{ display: block; padding: .28rem 0; text-decoration: none; }}
nav a:hover {{ text-decoration: underline; }}
main {{ min-width: 0; }}
main section {{ border-top: 1px solid var(--line); padding-top: 1.6rem; margin-top: 2.4rem; }}
h2 {{ font-size: 1.4rem; line-height: 1.3; margin: 0 0 .6rem; text-wrap: balance; }}
h3 {{ font-size: 1.08rem; margin: 2rem 0 .4rem; }}
p, ul, dl {{ max-width: 46rem; }}
.lead {{ font-size: 1.08rem; margin: 0 0 1.1rem; padding-left: .9rem; border-left: .25rem solid var(--blue); }}
.lead.bad {{ border-color: var(--red); }}
.lead.good {{ border-color: var(--green); }}
.note {{ color: var(--faint); font-size: .93rem; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .8rem; margin: 1.4rem 0; }}
.tile {{ background: var(--panel); border-radius: .5rem; padding: .85rem 1rem; }}
.tile dt {{ font-size: .85rem; color: var(--faint); line-height: 1.35; }}
.tile dd {{ margin: .15rem 0 0; font-size: 1.5rem; font-weight: 650; line-height: 1.25; }}
.tile dd small {{ display: block; font-size: .85rem; font-weight: 400; color: var(--faint); line-height: 1.35; }}
dl.tiles {{ max-width: none; }}
.good, .holds {{ color: var(--green); }} .bad, .broken {{ color: var(--red); }}
.lead.good, .lead.bad {{ color: inherit; }}
.holds, .broken {{ font-weight: 650; white-space: nowrap; }}
figure {{ margin: 1.6rem 0; }}
figcaption strong {{ display: block; font-size: 1.02rem; }}
figcaption {{ margin-bottom: .6rem; max-width: 46rem; color: var(--faint); font-size: .95rem; }}
figcaption strong {{ color: var(--ink); }}
figure svg {{ display: block; max-width: 100%; height: auto; }}
figure .narrow {{ display: none; }}
figure .scroll {{ border: 0; min-width: 0; }}
figure .scroll svg {{ max-width: none; overflow: visible; }}
figure .mark-rect path {{ shape-rendering: crispEdges; }}
.legend {{ list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.3rem; margin: 0 0 .6rem; padding: 0;
  font-size: .92rem; }}
.legend li {{ display: flex; align-items: center; gap: .45rem; }}
.legend svg {{ flex: none; }}
.table {{ margin: 1.3rem 0; }}
.scroll {{ overflow-x: auto; width: fit-content; max-width: 100%; min-width: min(100%, 28rem);
  border: 1px solid var(--line); border-radius: .4rem; }}
.caption {{ margin: 0 0 .35rem; font-weight: 650; font-size: .97rem; }}
table {{ border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .42rem .75rem; text-align: right; vertical-align: top; }}
td.text, th.text {{ text-align: left; }}
td.long {{ min-width: 15rem; }}
thead th {{ background: var(--panel); font-weight: 600; vertical-align: bottom; line-height: 1.3; }}
thead button {{ font: inherit; color: inherit; background: none; border: 0; padding: 0; text-align: inherit;
  cursor: pointer; min-height: 1.6rem; }}
thead button::after {{ content: "\\2195"; color: var(--faint); margin-left: .35em; font-weight: 400; }}
th[aria-sort="ascending"] button::after {{ content: "\\2191"; color: var(--blue); }}
th[aria-sort="descending"] button::after {{ content: "\\2193"; color: var(--blue); }}
tbody tr {{ border-top: 1px solid var(--line); }}
tbody tr:hover {{ background: var(--panel); }}
details {{ margin: 1rem 0; }}
summary {{ cursor: pointer; padding: .35rem 0; font-weight: 600; color: var(--blue); }}
code {{ font: .93em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }}
footer {{ color: var(--faint); font-size: .88rem; margin-top: 3rem; border-top: 1px solid var(--line); }}
@media (min-width: 66rem) {{
  .frame {{ grid-template-columns: 13rem minmax(0, 1fr); }}
  .frame > header {{ grid-column: 1 / -1; }}
  nav {{ position: sticky; top: 1.5rem; align-self: start; margin-top: 2.4rem; padding-top: 1.6rem; }}
}}
@media (max-width: 66rem) {{
  nav {{ background: var(--panel); border-radius: .5rem; padding: .9rem 1rem; margin-top: .6rem; }}
  nav ol {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: 0 1.2rem; }}
}}
@media (max-width: 40rem) {{
  figure .wide {{ display: none; }} figure .narrow {{ display: block; }}
  .tiles {{ grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .6rem; }}
  .tile {{ padding: .7rem .8rem; }} .tile dd {{ font-size: 1.25rem; }}
  .frame {{ padding: 0 1rem 3rem; }} .notice {{ padding: .7rem 1rem; }}
}}
@media (prefers-reduced-motion: reduce) {{ html {{ scroll-behavior: auto; }} }}
@media (prefers-color-scheme: dark) {{
  :root {{
    --paper: {DARK[PAPER]}; --panel: #1c252e; --ink: {DARK[INK]}; --faint: {DARK[FAINT]}; --line: {DARK[GRID]};
    --blue: {DARK[BLUE]}; --red: {DARK[RED]}; --green: {DARK[GREEN]}; --private: #3a1b19; --open: #16301f;
    --amber: {DARK[ORANGE]};
  }}
}}
@media screen and (prefers-color-scheme: dark) {{
{_dark_charts()}
}}
@media print {{
  :root {{
    color-scheme: light; --paper: {PAPER}; --panel: #f4f6f8; --ink: {INK}; --faint: {FAINT}; --line: {GRID};
    --blue: {BLUE}; --red: {RED}; --green: {GREEN}; --private: #ffffff; --open: #ffffff; --amber: #8a5200;
  }}
  body {{ font-size: 10.5pt; }}
  nav, .skip, thead button::after {{ display: none !important; }}
  .frame {{ display: block; max-width: none; padding: 0; }}
  .notice {{ border: 1.5pt solid; margin-bottom: 1rem; }}
  figure .wide {{ display: block; }} figure .narrow {{ display: none; }}
  .scroll {{ overflow: visible; border: 0; }}
  figure .scroll svg {{ max-width: 100%; }}
  td.long {{ min-width: 0; }}
  figure, tr, .tile, .lead {{ break-inside: avoid; }}
  h2, h3, .caption {{ break-after: avoid; }}
  details::details-content {{ content-visibility: visible; height: auto; display: block; }}
  a {{ color: inherit; text-decoration: none; }}
}}
"""

SORT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent;
  const compare = (a, b) => a === b ? 0 : a === "" ? 1 : b === "" ? -1 : isNaN(a) || isNaN(b)
    ? String(a).localeCompare(String(b), "en", {numeric: true}) : a - b;
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sorted = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(value(a, at), value(b, at)));
      body.append(...sorted);
    });
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(one => { one.open = true; }));
"""
