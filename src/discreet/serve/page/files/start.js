// The start page: what there is, in numbers. It asks for tables like any reader, and only for those that cost nothing;
// what the rules do not show is left out.

import { laidOut, parsed } from "./answer.js";
import * as api from "./api.js";
import { button, el, replace } from "./dom.js";
import { decimal, labelLang, number, percent, t } from "./language.js";
import { axesText, title, topicsOf, unitName, variableName } from "./names.js";
import { pyramidView } from "./pyramid.js";
import { added, firstBreakdown, lengthOf, variablesOf } from "./question.js";
import { fromTable } from "./tables.js";

const AGES = 30; // categories of age that are comfortable to read in a small pyramid
const AREAS = 4000;
const BARS = 12; // areas that are shown as bars where there is no map
const SHOWN = 4; // variables of a topic

const named = (variables, pattern) => variables.find((one) => pattern.test(one.name) || pattern.test(one.label));
const finest = (variable, most) =>
  (variable.breakdowns.findLast((one) => one.finest <= most && one.codes > 1) ?? variable.breakdowns[0]).name;

/** The questions of the start page: the ages of both sexes, and the areas: on a map, else a few large ones. */
function questions(state) {
  const { catalogue, settings } = state.world;
  const unit = catalogue.units[0];
  const variables = catalogue.variables.filter((one) => one.units.includes(unit));
  const age = named(variables, /^(age|alter)\b/i);
  const sex = named(variables, /^(sex|gender|geschlecht)\b/i);
  const place = variables.find((one) => one.is_place);
  const ages = age && sex ? { unit, axes: [{ breakdown: finest(age, AGES) }, { breakdown: firstBreakdown(sex) }] } : null;
  const mapped = place?.breakdowns.find((one) => one.name === settings.mapped)?.name; // the level that has shapes
  const few = place?.breakdowns.findLast((one) => one.finest > 1 && one.finest <= BARS)?.name;
  const shown = settings.geometry && place ? (mapped ?? finest(place, AREAS)) : few;
  const areas = shown ? { unit, axes: [{ breakdown: shown }] } : null;
  return { ages, areas, total: ages || areas ? null : { unit, axes: [] } };
}

/** A table that costs nothing: where tables are charged, only one that the reader has already. */
async function free(query, isCharged) {
  if (!query) return null;
  if (isCharged) {
    const found = await api.preview(query);
    if (found.refusal || found.budget?.price !== 0) return null;
  }
  return { query, table: parsed(await api.table(query)) };
}

/** Get what the start page shows; a table that is refused or fails is left out. */
export async function loadStart(store) {
  const { world } = store.state;
  store.change({ start: { status: "loading" } });
  const asked = questions(store.state);
  const names = Object.keys(asked);
  const found = await Promise.all(names.map((name) => free(asked[name], world.catalogue.charged).catch(() => null)));
  if (store.state.world.catalogue !== world.catalogue) return; // another language in the meantime
  store.change({ start: { status: "ready", ...Object.fromEntries(names.map((name, k) => [name, found[k]])) } });
}

/** The number of all: of whichever table has it. */
function totalOf({ ages, areas, total }) {
  const found = [ages, areas, total].find((one) => one && one.table.axes.every((axis) => axis.total >= 0 || axis.codes.length === 1));
  if (!found) return null;
  const index = found.table.axes.reduce((sum, axis) => sum + Math.max(0, axis.total) * axis.stride, 0);
  return found.table.values[index];
}

/** The first thing that a reader sees: numbers, topics, and tables to begin with. */
export function startView(state, actions) {
  const { catalogue } = state.world;
  return [
    el("header", { class: "result-head" }, el("h2", { id: "result-title", lang: labelLang() }, catalogue.title || catalogue.name)),
    el("p", { class: "lead" }, t(catalogue.from_release ? "empty.lead.release" : "empty.lead")),
    catalogue.charged ? el("p", { class: "notice" }, t("budget.about")) : null,
    el("div", { class: "overview" }, factView(state), agesView(state, actions), areasView(state, actions)),
    topicsView(state, actions),
    offersView(state, actions),
  ];
}

function factView(state) {
  const { start, world } = state;
  const total = start.status === "ready" ? totalOf(start) : null;
  if (total === null) return null;
  return el(
    "section",
    { class: "fact", "aria-labelledby": "start-total" },
    el("p", { class: "figure", data: { total } }, number(total)),
    el("h3", { id: "start-total" }, unitName(world.catalogue.units[0], world.catalogue)),
    sharesView(state),
  );
}

/** The shares of the first categories, such as both sexes, from published totals. */
function sharesView({ start }) {
  const table = start.ages?.table;
  const sexes = table?.axes[1];
  if (!sexes || table.axes[0].total < 0 || sexes.total < 0) return null;
  const base = table.axes[0].total * table.axes[0].stride;
  const whole = table.values[base + sexes.total * sexes.stride];
  if (!whole) return null;
  const parts = sexes.codes.map((_, k) => k).filter((k) => k !== sexes.total);
  return el(
    "ul",
    { class: "shares" },
    parts.map((k) => el("li", {}, `${sexes.labels[k]} ${percent(table.values[base + k * sexes.stride] / whole)}`)),
  );
}

const loadingView = () => el("div", { class: "skeleton", "aria-hidden": "true" }, Array.from({ length: 5 }, () => el("i", {})));

function agesView(state, actions) {
  const { start } = state;
  const query = questions(state).ages;
  if (!query || (start.status === "ready" && !start.ages) || start.status === "none") return null;
  const [age, sex] = query.axes;
  const members = { unit: query.unit, where: "", count: "", rows: [full(age)], columns: [full(sex)] };
  return el(
    "section",
    { class: "tile start-ages", "aria-labelledby": "start-ages" },
    el("h3", { id: "start-ages" }, title(state.world.catalogue, query)),
    start.ages ? pyramidView(start.ages.table) : loadingView(),
    button(t("start.table"), () => actions.open(members), { class: "small", data: { key: "start-ages" } }),
  );
}

const full = (axis) => ({ codes: [], groups: {}, ...axis });

function areasView(state, actions) {
  const { start } = state;
  const query = questions(state).areas;
  if (!query || (start.status === "ready" && !start.areas) || start.status === "none") return null;
  const isMap = state.world.settings.geometry;
  const members = { unit: query.unit, where: "", count: "", rows: query.axes.map(full), columns: [], view: isMap ? "map" : "table" };
  const drawn = isMap ? smallMap : barsView;
  return el(
    "section",
    { class: "tile start-areas", "aria-labelledby": "start-areas" },
    el("h3", { id: "start-areas" }, title(state.world.catalogue, query)),
    start.areas ? drawn(state, start.areas) : loadingView(),
    button(t(isMap ? "start.map" : "start.table"), () => actions.open(members), { class: "small", data: { key: "start-areas" } }),
  );
}

/** The finest areas as bars, where the office gives no map. */
function barsView(state, { table }) {
  const [axis] = table.axes;
  const deepest = Math.max(...axis.depths);
  const places = axis.codes.map((_, k) => k).filter((k) => axis.depths[k] === deepest);
  const most = Math.max(...places.map((k) => table.values[k] ?? 0)) || 1;
  const width = (k) => `${(100 * Math.max(0, table.values[k] ?? 0)) / most}%`;
  return el(
    "ul",
    { class: "bars", lang: labelLang() },
    places.map((k) =>
      el(
        "li",
        {},
        el("span", {}, axis.labels[k]),
        el("i", { "aria-hidden": "true" }, el("b", { style: { width: width(k) } })),
        el("span", {}, table.values[k] === null ? t("withheld") : number(table.values[k])),
      ),
    ),
  );
}

/** The map, whose script comes after everything else. */
function smallMap(state, { query, table }) {
  const rows = table.axes.map((axis) => axis.variable);
  const view = laidOut(table, { rows, columns: [], totals: true, values: "count", sort: null });
  const shown = { ...state, answer: { ...state.answer, table, query }, values: "count", picks: {}, classes: "quantile" };
  const place = el("div", {}, loadingView());
  import("./map.js").then(({ mapView }) => replace(place, mapView(shown, view, { show: () => {} })));
  return place;
}

/** The topics with their first variables; a press on one makes its table. */
function topicsView(state, actions) {
  const { catalogue } = state.world;
  const topics = topicsOf(variablesOf(state).filter((one) => !one.is_place), catalogue).filter(([topic]) => topic);
  if (!topics.length) return null;
  const variable = (one) =>
    button(variableName(catalogue, one.name), () => (catalogue.charged ? actions.ask(added(state, one)) : actions.open({ rows: [], columns: [], ...added({ ...state, rows: [], columns: [] }, one) })), {
      class: "plain",
      title: one.description || null,
      data: { key: `start-${one.name}` },
    });
  const more = (some) =>
    some.length > SHOWN
      ? el("details", {}, el("summary", {}, t("topics.more", { n: some.length - SHOWN })), some.slice(SHOWN).map(variable))
      : null;
  return [
    el("h3", {}, t("topics")),
    el(
      "ul",
      { class: "topics" },
      topics.map(([topic, some]) =>
        el("li", { lang: labelLang() }, el("strong", {}, topic), some.slice(0, SHOWN).map(variable), more(some)),
      ),
    ),
  ];
}

/** The examples without those that the rules refuse; where tables are charged, only those that the budget pays, each
 * with its price. */
function offersView(state, actions) {
  const { catalogue } = state.world;
  const offered = examples(state)
    .map((one, k) => ({ ...one, ...state.prices[k] }))
    .filter((one) => (catalogue.charged ? one.price !== undefined : !one.isRefused));
  if (!offered.length) return null;
  const offer = ({ caption, members, price, left }, k) =>
    button(
      [...caption, price ? el("small", { class: "price" }, t("budget.cost", { price: decimal(price), left: decimal(left) })) : null].filter(Boolean),
      () => actions.open(members),
      { class: "offer", data: { key: `example-${k}` } },
    );
  return [
    el("h3", {}, t("empty.examples")),
    el("ul", { class: "offers" }, offered.map((one, k) => el("li", {}, offer(one, k)))),
  ];
}

/** The smallest declared table of each unit, two of the first unit; a click shows one. */
export function examples(state) {
  const { catalogue } = state.world;
  const made = catalogue.tables
    .map((table) => ({ table, members: fromTable(table, catalogue) }))
    .map((one) => ({ ...one, axes: [...one.members.rows, ...one.members.columns] }))
    .filter(({ axes }) => axes.length > 1 && axes.length <= catalogue.limits.axes)
    .map((one) => ({ ...one, cells: one.axes.reduce((product, axis) => product * lengthOf(axis, catalogue), 1) }))
    .sort((a, b) => a.cells - b.cells);
  return catalogue.units
    .flatMap((unit, k) => made.filter(({ table }) => table.unit === unit).slice(0, k ? 1 : 2))
    .map(({ table, members, axes }) => ({
      caption: [
        el("strong", { lang: labelLang() }, title(catalogue, { unit: table.unit, axes })),
        el("small", { lang: labelLang() }, axesText(catalogue, { axes }).join(" × ")),
      ],
      members,
    }));
}
