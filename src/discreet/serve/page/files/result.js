// The right side: the answer, how it is shown, and what a reader must know of it.

import { isStale, layoutFor } from "./actions.js";
import { laidOut, codeText } from "./answer.js";
import { chartView } from "./chart.js";
import { button, choice, el, replace, signButton } from "./dom.js";
import { downloadView } from "./download.js";
import { filterWords } from "./filter.js";
import { Grid } from "./grid.js";
import { number, percent, t } from "./language.js";
import { mapView } from "./map.js";
import { markedView, marking } from "./marks.js";
import { possible } from "./measures.js";
import { NOISE } from "./kinds.js";
import { fetchRanges, makePointer } from "./noise.js";
import { citationOf, headingOf, title, variableName } from "./names.js";
import { fullView } from "./screen.js";
import { shareView } from "./share.js";
import { linesView, valuesView } from "./values.js";
import { blockedView, refusalTitle, refusalView } from "./verdict.js";

/** What shows the noise of the cell that is pointed at. */
export const pointer = makePointer;

/** Everything but the chosen cell, which changes more often. */
export function resultView(state, actions, keep) {
  const { answer } = state;
  const failed = answer.status === "failed" ? failedView(state, actions) : null;
  if (!answer.table) return failed ?? loadingView(actions);
  const layout = layoutFor(state);
  const view = laidOut(answer.table, { ...state, ...layout });
  const isCurrent = !isStale(state);
  return [
    failed,
    failed ? el("p", { class: "quiet earlier" }, t("earlier")) : null,
    el(
      "div",
      { class: "shown", inert: !isCurrent && Boolean(failed) },
      el("div", { class: "above" }, above(state, actions, layout, view, failed)),
      body(state, actions, view, keep),
      el("div", { class: "below" }, markedView(state, actions)),
    ),
  ];
}

/** Show another view of the same table without taking it out of the document. */
export function updateResult(place, state, actions, grid) {
  const layout = layoutFor(state);
  const view = laidOut(state.answer.table, { ...state, ...layout });
  grid.update(view, state, callbacksOf(state, actions));
  replace(place.querySelector(".above"), above(state, actions, layout, view, null));
  replace(place.querySelector(".below"), markedView(state, actions));
}

const above = (state, actions, layout, view, failed) => [
  head(state, actions, layout, failed),
  state.answer.table.warnings.map((caption) =>
    el("p", { class: "notice warn" }, el("strong", {}, t("warned")), " ", caption),
  ),
  toolbar(state, actions, layout, view),
];

function head(state, actions, layout, isBelow) {
  const {
    answer,
    world: { catalogue },
  } = state;
  const filter = filterWords(answer.query.where, state.world);
  const source = [headingOf(catalogue), catalogue.version && t("version", { version: catalogue.version }), t("size.shown", { n: answer.table.size })];
  return el(
    "header",
    { class: "result-head" },
    el(
      "div",
      {},
      el("h2", { id: isBelow ? "earlier-title" : "result-title", tabindex: "-1", data: { key: "title" } }, title(catalogue, answer.query)),
      filter ? el("p", { class: "only" }, t("where.shown", { filter })) : null,
      el("p", { class: "quiet" }, source.filter(Boolean).join(" · ")),
    ),
    el("div", { class: "row" }, downloadView(state, actions, layout), shareView(state, actions), fullView(actions.redraw)),
  );
}

function toolbar(state, actions, layout, view) {
  const swap = () => actions.show({ rows: state.columns, columns: state.rows, sort: null });
  return el(
    "div",
    { class: "toolbar", role: "group", "aria-label": t("toolbar") },
    tabs(state, actions),
    valuesView(state, actions, layout, view),
    choice(
      t("texts"),
      ["labels", "codes", "both"].map((one) => [one, t(`texts.${one}`)]),
      state.texts,
      (texts) => actions.show({ texts }),
      { data: { key: "texts" } },
    ),
    state.view === "table"
      ? choice(
          t("noise"),
          NOISE.map((one) => [one, t(`noise.${one}`)]),
          state.noise,
          (noise) => actions.show({ noise }),
          { data: { key: "noise" } },
        )
      : null,
    moreView(state, actions),
    signButton("⇄", t("swap"), swap, { class: "sign swap", disabled: isStale(state), data: { key: "swap" } }),
    state.sort ? button(t("sort.none"), () => actions.show({ sort: null }), { data: { key: "unsort" } }) : null,
  );
}

/** Choices that are used less often. */
function moreView(state, actions) {
  return el(
    "details",
    { class: "more", name: "menus", data: { key: "more" } },
    el("summary", { class: "button" }, t("more")),
    el(
      "div",
      { class: "drop" },
      linesView(state, actions),
    ),
  );
}

function tabs(state, actions) {
  const hasMap = state.world.settings.geometry && state.answer.table.axes.some((axis) => axis.isPlace);
  const names = ["table", "chart", ...(hasMap ? ["map"] : [])];
  return el(
    "div",
    { class: "segments views", role: "radiogroup", "aria-label": t("view") },
    names.map((name) =>
      el(
        "label",
        { class: "segment" },
        el("input", {
          type: "radio",
          name: "view",
          value: name,
          checked: state.view === name,
          data: { key: `view-${name}` },
          on: { change: () => actions.show(viewed(state, name)) },
        }),
        el("span", {}, t(`view.${name}`)),
      ),
    ),
  );
}

let switched = null; // the share that a map chose by itself

/** What another view changes: after a map the table is of counts again, unless the reader chose something else. */
function viewed(state, name) {
  if (name === "map") return { view: name, ...ratesFirst(state) };
  const isBack = switched && state.values === switched.values;
  switched = null;
  return { view: name, ...(isBack ? { values: "count", picks: {} } : {}) };
}

/** A map of counts mostly shows where people live: it starts with the share of one category in each area. */
function ratesFirst(state) {
  const { table } = state.answer;
  const place = table.axes.find((axis) => axis.isPlace);
  const other = table.axes.find((axis) => axis !== place && axis.codes.length > 1 && axis.total >= 0);
  if (state.values !== "count" || !other || Object.keys(state.picks).length) return {};
  const layout = layoutFor(state);
  const values = layout.rows.includes(place.variable) ? "row" : "column";
  if (!possible(table, layout.rows, layout.columns)[values]) return {};
  const first = other.codes.find((_, k) => k !== other.total);
  switched = { values, picks: { [other.variable]: first } };
  return { ...switched };
}

function body(state, actions, view, keep) {
  if (state.view === "chart") return chartView(state, view, actions);
  if (state.view === "map" && state.world.settings.geometry) return mapView(state, view, actions);
  return keep(() => new Grid(view, state, callbacksOf(state, actions)));
}

const callbacksOf = (state, actions) => ({
  ask: actions.explain,
  sortBy: (column) => actions.show({ sort: nextSort(state.sort, column) }),
  point: actions.point,
  fetchNoise: (cells, measure) => fetchRanges(state.answer, cells, measure),
  fold: (axis, codes) => actions.show({ closed: { ...state.closed, [axis.variable]: codes } }),
  markArea: marking(state, actions),
});

function nextSort(sort, column) {
  if (sort?.column !== column) return { column, direction: "descending" };
  return sort.direction === "descending" ? { column, direction: "ascending" } : null;
}

/** How much the noise may have changed the chosen cell. */
export function cellView(state, close) {
  const { cell, answer } = state;
  if (!cell || !answer.table)
    return state.view === "table" && answer.table ? el("p", { class: "quiet cell-hint" }, t("cell.hint")) : null;
  const value = answer.table.values[cell.index];
  const where = answer.table.axes
    .filter((axis) => axis.codes.length > 1)
    .map((axis) => {
      const place = Math.floor(cell.index / axis.stride) % axis.codes.length;
      return `${variableName(state.world.catalogue, axis.variable)}: ${codeText(axis, place, "labels", t("total"))}`;
    });
  return el(
    "div",
    { class: "cell-panel", role: "group", "aria-label": t("cell.title") },
    el(
      "div",
      {},
      el("h3", {}, where.join(" · ") || t("total")),
      value === null ? el("p", {}, t("withheld.long")) : rangeWords(cell, value, state.world.catalogue),
    ),
    signButton("✕", t("close"), close, { data: { key: "cell-close" } }),
  );
}

function rangeWords(cell, value, { adds_up: addsUp }) {
  const published = el("p", {}, t("cell.published"), " ", el("strong", {}, number(value)));
  if (cell.status === "loading") return [published, el("p", { class: "quiet" }, t("loading"))];
  if (cell.status === "failed") return [published, el("p", { class: "bad" }, cell.problem.message || t("unreachable"))];
  const { low, high } = cell.range;
  if (low === null) return [published, el("p", {}, t("cell.unknown"))];
  return [
    published,
    el(
      "p",
      { data: { range: `${low} ${high}` } },
      t("cell.range", { low, high, level: percent(cell.level).replace(/[.,]0/, "") }),
    ),
    el("p", { class: "quiet" }, t(addsUp ? "cell.why.sums" : "cell.why")),
  ];
}

/** What a reader must know of the numbers. */
export function notesView(state) {
  const { table } = state.answer;
  if (!table) return null;
  const { catalogue } = state.world;
  return el(
    "div",
    { class: "notes" },
    table.values.includes(null) ? el("p", { class: "withheld-why" }, t("withheld.why")) : null,
    table.blockedCount ? blockedView({ blocked: table.blocked, blocked_count: table.blockedCount }) : null,
    el(
      "details",
      { data: { key: "why" } },
      catalogue.adds_up
        ? [el("summary", {}, t("why.sums.title")), el("p", {}, t("why.sums"))]
        : [el("summary", {}, t("why.title")), ["why.noise", "why.totals", "why.percent"].map((key) => el("p", {}, t(key)))],
      catalogue.swapped ? el("p", {}, t("why.swapped")) : null,
    ),
    el("p", { class: "cited" }, citationOf(state)),
  );
}

/** A table is on its way while an earlier one is shown. */
export function waitingView({ answer }, actions) {
  if (answer.status !== "loading" || !answer.table) return null;
  return el(
    "p",
    { class: "waiting" },
    el("progress", { class: "busy", "aria-label": t("loading") }),
    button(t("stop"), () => actions.stop(), { class: "small", data: { key: "stop" } }),
  );
}

function loadingView(actions) {
  return [
    el("h2", { id: "result-title", class: "unseen" }, t("loading")),
    el(
      "div",
      { class: "skeleton", "aria-hidden": "true" },
      Array.from({ length: 9 }, () => el("i", {})),
    ),
    el("p", { class: "quiet center" }, t("loading")),
    el("p", { class: "center" }, button(t("stop"), () => actions.stop(), { data: { key: "stop" } })),
  ];
}

function failedView(state, actions) {
  const { problem } = state.answer;
  const refused = problem.isRefusal;
  return [
    el(
      "header",
      { class: "result-head" },
      el(
        "h2",
        { id: "result-title" },
        el("span", { id: "problem-title", tabindex: "-1" }, refused ? refusalTitle(problem.details) : t("failed.title")),
      ),
    ),
    refused
      ? refusalView(state, problem.details, problem.message, actions, true)
      : el(
          "div",
          { class: "notice bad" },
          el("p", { role: "alert" }, problem.message || t("unreachable")),
          problem.status === 401
            ? button(t("token"), () => actions.signIn(), { data: { key: "answer-token" } })
            : button(t("again"), () => actions.run({ push: false }), { data: { key: "again" } }),
        ),
  ];
}
