// The left side: what is counted, where, and by what.

import { aboutButton, aboutView } from "./about.js";
import { button, choice, el } from "./dom.js";
import { filterView } from "./filter.js";
import { labelLang, t } from "./language.js";
import { breakdownName, topicsOf, unitName, variableName } from "./names.js";
import { TOTAL, added, axesOf, changed, firstBreakdown, removed, variableNamed, variableOf, variablesOf } from "./question.js";
import { fromTable } from "./tables.js";
import { fold } from "./tree.js";

/** Who is counted. */
export function unitView(state, actions) {
  const { catalogue } = state.world;
  const pick = (unit) => {
    const { rows, columns } = actions.current(); // the layout may have changed since this was drawn
    const has = (axis) => variableNamed(catalogue, variableOf(axis))?.units.includes(unit);
    actions.ask({ unit, count: "", where: "", rows: rows.filter(has), columns: columns.filter(has) });
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
    catalogue.units.length > 1 ? el("div", { class: "segments" }, radios) : el("p", {}, unitName(state.unit, catalogue)),
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

/** What is counted by: one search, the areas, then the other variables by topic. */
export function variablesView(state, actions, change, editAreas) {
  const used = new Set(axesOf(state).map(variableOf));
  const field = el("input", {
    type: "search",
    value: state.search,
    "aria-label": t("search"),
    placeholder: t("search"),
    data: { key: "search" },
    on: { input: (event) => change({ search: event.target.value }) },
  });
  const isSearched = Boolean(state.search.trim());
  return el(
    "fieldset",
    { class: "part" },
    el("legend", {}, t("part.variables")),
    field,
    isSearched ? foundView(state, actions, used) : null,
    isSearched ? null : areaLists(state, actions, editAreas),
    isSearched ? null : topicLists(state, actions, used, change),
  );
}

/** The variables of each topic, in the order of the catalogue; without headings where no topics are declared. */
function topicLists(state, actions, used, change) {
  const variables = variablesOf(state).filter((one) => !one.is_place);
  return topicsOf(variables, state.world.catalogue).map(([topic, some]) => [
    topic ? el("h3", { class: "topic", lang: labelLang() }, topic) : null,
    el(
      "ul",
      { class: "variables", "aria-label": topic || null },
      some.map((one) => variableItem(state, one, used.has(one.name), actions, change)),
    ),
  ]);
}

function variableItem(state, variable, isUsed, actions, change) {
  const isOpen = state.about === variable.name;
  const name = variableName(state.world.catalogue, variable.name);
  return el(
    "li",
    {},
    el(
      "div",
      { class: "variable-line" },
      variableButton(state, variable, isUsed, actions),
      aboutButton(variable, name, isOpen, () => change({ about: isOpen ? "" : variable.name })),
    ),
    isOpen ? aboutView(variable) : null,
  );
}

/** What the search finds: variables at once, categories and tables as soon as the server answers. */
function foundView(state, actions, used) {
  const { catalogue } = state.world;
  const words = fold(state.search).split(/\s+/).filter(Boolean);
  const own = variablesOf(state).filter((one) => {
    const text = fold(`${one.name} ${variableName(catalogue, one.name)} ${one.topic} ${one.description}`);
    return words.every((word) => text.includes(word));
  });
  const { found } = state;
  const isCurrent = found && found.text === state.search.trim() && found.unit === state.unit;
  const categories = isCurrent ? found.categories : [];
  const tables = isCurrent ? found.tables : [];
  const nothing = isCurrent && !own.length && !categories.length && !tables.length;
  return el(
    "div",
    { class: "found" },
    own.length ? el("h3", { class: "topic" }, t("found.variables")) : null,
    el(
      "ul",
      { class: "variables" },
      own.map((one) => el("li", {}, variableButton(state, one, used.has(one.name), actions))),
    ),
    categories.length ? el("h3", { class: "topic" }, t("found.categories")) : null,
    el("ul", { class: "variables" }, categories.map((one) => el("li", {}, categoryButton(state, one, actions)))),
    tables.length ? el("h3", { class: "topic" }, t("found.tables")) : null,
    el("ul", { class: "variables" }, tables.map((one) => el("li", {}, tableButton(state, one, actions)))),
    el("p", { class: "quiet", role: "status" }, nothing ? t("found.nothing") : ""),
  );
}

/** A category that was found: a press shows only it, with the total. */
function categoryButton(state, found, actions) {
  const axis = { breakdown: found.breakdown, codes: [TOTAL, found.code], groups: {} };
  const isIn = axesOf(state).some((one) => variableOf(one) === found.variable);
  const take = () => {
    if (isShown) return;
    const now = actions.current();
    actions.ask(isIn ? changed(now, joined(now, axis)) : { rows: [...now.rows, axis] });
    actions.announce(t("announce.added", { name: found.label }));
  };
  const isShown = axesOf(state).some((one) => one.breakdown === found.breakdown && one.codes.includes(found.code));
  return button(
    [
      el("span", { class: "tick", "aria-hidden": "true" }, isShown ? "✓" : "+"),
      el("span", { lang: labelLang() }, found.label, el("small", { class: "path" }, [found.variable_label, ...found.path].join(" › "))),
    ],
    take,
    {
      class: "variable",
      disabled: !found.breakdown,
      "aria-pressed": String(isShown),
      data: { key: `found-${found.variable}-${found.code}` },
    },
  );
}

/** The chosen categories of the axis in the table and one more, where they are of the same breakdown. */
function joined(state, axis) {
  const before = axesOf(state).find((one) => variableOf(one) === variableOf(axis));
  if (before.breakdown !== axis.breakdown || !before.codes.length) return axis;
  return { ...before, codes: [...new Set([...before.codes, ...axis.codes])] };
}

function tableButton(state, found, actions) {
  const { catalogue } = state.world;
  const table = catalogue.tables.find((one) => one.id === found.id);
  return button(
    [el("span", { class: "tick", "aria-hidden": "true" }, "▦"), el("span", { lang: labelLang() }, found.title)],
    () => actions.open(fromTable(table, catalogue)),
    { class: "variable", data: { key: `found-table-${found.id}` } },
  );
}

function areaLists(state, actions, editAreas) {
  const { catalogue } = state.world;
  const places = variablesOf(state).filter((one) => one.is_place);
  return places.map((place) => {
    const chosen = axesOf(state).find((axis) => variableOf(axis) === place.name);
    const pairs = [["", t("areas.none")], ...place.breakdowns.map((one) => [one.name, breakdownName(catalogue, one, true)])];
    const caption = places.length > 1 ? variableName(catalogue, place.name) : t("areas.level");
    const list = choice(
      caption,
      pairs,
      chosen?.breakdown ?? "",
      (name) => actions.ask(withAreas(actions.current(), place, chosen, name)),
      { data: { key: `area-${place.name}` } },
    );
    list.classList.add("beside");
    const choose = button(t("areas.choose"), () => editAreas(chosen ?? { breakdown: firstBreakdown(place), codes: [], groups: {} }, `areas-${place.name}`), {
      class: "small",
      data: { key: `areas-${place.name}` },
    });
    return [list, choose];
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
    actions.ask(isUsed ? removed(actions.current(), variable.name) : added(actions.current(), variable));
    actions.announce(t(isUsed ? "announce.removed" : "announce.added", { name: caption }));
  };
  return button(
    [
      el("span", { class: "tick", "aria-hidden": "true" }, isUsed ? "✓" : "+"),
      el("span", { lang: labelLang() }, caption),
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
