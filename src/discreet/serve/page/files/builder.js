// The left side: what is counted, where, and by what.

import { button, choice, el } from "./dom.js";
import { filterView } from "./filter.js";
import { t } from "./language.js";
import { breakdownName, unitName, variableName } from "./names.js";
import { added, axesOf, changed, removed, variableNamed, variableOf, variablesOf } from "./question.js";

/** Who is counted. */
export function unitView(state, actions) {
  const { catalogue } = state.world;
  const pick = (unit) => {
    const has = (axis) => variableNamed(catalogue, variableOf(axis))?.units.includes(unit);
    actions.ask({ unit, count: "", where: "", rows: state.rows.filter(has), columns: state.columns.filter(has) });
  };
  const radios = catalogue.units.map((unit) =>
    el(
      "label",
      { class: "segment" },
      el("input", {
        type: "radio",
        name: "unit",
        value: unit,
        checked: unit === state.unit,
        data: { key: `unit-${unit}` },
        on: { change: () => pick(unit) },
      }),
      el("span", {}, unitName(unit, catalogue)),
    ),
  );
  const counts = catalogue.counts[state.unit] || [];
  return el(
    "fieldset",
    { class: "part" },
    el("legend", {}, t("part.unit")),
    el("div", { class: "segments" }, radios),
    counts.length
      ? choice(
          t("count"),
          [["", t("count.all")], ...counts.map((name) => [name, name])],
          state.count,
          (count) => actions.ask({ count }),
          { data: { key: "count" } },
        )
      : null,
    filterView(state, actions),
  );
}

/** What is counted by: the level of areas, then the other variables with a field to find them. */
export function variablesView(state, actions, search) {
  const { catalogue } = state.world;
  const used = new Set(axesOf(state).map(variableOf));
  const wanted = state.search.trim().toLowerCase();
  const found = variablesOf(state).filter(
    (one) => !one.is_place && `${one.name} ${variableName(catalogue, one.name)}`.toLowerCase().includes(wanted),
  );
  const field = el("input", {
    type: "search",
    value: state.search,
    "aria-label": t("variables.search"),
    placeholder: t("variables.search"),
    data: { key: "search" },
    on: { input: (event) => search(event.target.value) },
  });
  return el(
    "fieldset",
    { class: "part" },
    el("legend", {}, t("part.variables")),
    areaLists(state, actions),
    field,
    el(
      "ul",
      { class: "variables" },
      found.map((one) => el("li", {}, variableButton(state, one, used.has(one.name), actions))),
    ),
    found.length ? null : el("p", { class: "quiet" }, t("variables.none")),
  );
}

function areaLists(state, actions) {
  const { catalogue } = state.world;
  const places = variablesOf(state).filter((one) => one.is_place);
  return places.map((place) => {
    const chosen = axesOf(state).find((axis) => variableOf(axis) === place.name);
    const pairs = [["", t("areas.none")], ...place.breakdowns.map((one) => [one.name, breakdownName(catalogue, one)])];
    const caption = places.length > 1 ? variableName(catalogue, place.name) : t("areas.level");
    const list = choice(
      caption,
      pairs,
      chosen?.breakdown ?? "",
      (name) => actions.ask(withAreas(state, place, chosen, name)),
      { data: { key: `area-${place.name}` } },
    );
    list.classList.add("beside");
    return list;
  });
}

/** Areas go to the front of the rows, where a reader of statistics looks for them. */
function withAreas(state, place, chosen, name) {
  if (!name) return removed(state, place.name);
  const axis = { breakdown: name, codes: [], groups: {} };
  return chosen ? changed(state, axis) : { rows: [axis, ...state.rows] };
}

function variableButton(state, variable, isUsed, actions) {
  const caption = variableName(state.world.catalogue, variable.name);
  const toggle = () => {
    actions.ask(isUsed ? removed(state, variable.name) : added(state, variable));
    actions.announce(t(isUsed ? "announce.removed" : "announce.added", { name: caption }));
  };
  return button(
    [
      el("span", { class: "tick", "aria-hidden": "true" }, isUsed ? "✓" : "+"),
      el("span", {}, caption),
    ],
    toggle,
    {
      class: "variable",
      "aria-pressed": String(isUsed),
      draggable: "true",
      data: { key: `variable-${variable.name}` },
      on: { dragstart: (event) => event.dataTransfer.setData("text/plain", variable.name) },
    },
  );
}
