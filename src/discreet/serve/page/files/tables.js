// Tables that the office has declared, as starting points: a list to search.

import { button, el } from "./dom.js";
import { number, t } from "./language.js";
import { axesText, unitName } from "./names.js";
import { laidOut, variableNamed } from "./question.js";

/** The folded list; nothing where no tables are declared. */
export function tablesView(state, actions) {
  const { catalogue } = state.world;
  if (!catalogue.tables.length) return null;
  const items = catalogue.tables.map((table) => item(table, catalogue, actions));
  const none = el("p", { class: "quiet", role: "status" });
  const search = el("input", {
    type: "search",
    "aria-label": t("tables.search"),
    placeholder: t("tables.search"),
    data: { key: "tables-search" },
    on: { input: (event) => narrow(items, event.target.value, none) },
  });
  return el(
    "details",
    { class: "part", data: { key: "tables" } },
    el("summary", {}, t("tables.title", { count: number(catalogue.tables.length) })),
    search,
    none,
    el("ul", { class: "tables" }, items),
  );
}

function narrow(items, wanted, none) {
  const parts = wanted.toLowerCase().split(/\s+/);
  for (const one of items) one.hidden = !parts.every((part) => one.textContent.toLowerCase().includes(part));
  none.textContent = items.every((one) => one.hidden) ? t("tables.none") : "";
}

function item(table, catalogue, actions) {
  const axes = axesText(catalogue, { axes: table.axes }).join(" × ");
  const take = (event) => {
    event.currentTarget.closest("details").open = false;
    actions.ask(fromTable(table, catalogue));
    if (catalogue.charged) actions.announce(t("announce.taken", { name: table.id }));
    document.querySelector('[data-key="tables"] > summary').focus();
  };
  return el(
    "li",
    {},
    button(
      [
        el("span", {}, table.title || `${unitName(table.unit, catalogue)}: ${axes}`),
        el("small", { class: "quiet" }, t("tables.number", { id: table.id })),
      ].filter(Boolean),
      take,
      { class: "item", data: { key: `take-${table.id}` } },
    ),
  );
}

/** A declared table as members of the state; axes that do not divide anything are left out. */
export function fromTable(table, catalogue) {
  const dividing = table.axes.filter((name) => {
    const found = variableNamed(catalogue, name.split(".")[0])?.breakdowns.find((one) => one.name === name);
    return found && found.codes > 1;
  });
  const axes = dividing.map((breakdown) => ({ breakdown, codes: [], groups: {} }));
  return { unit: table.unit, where: table.base, count: table.count, ...laidOut(axes, catalogue) };
}
