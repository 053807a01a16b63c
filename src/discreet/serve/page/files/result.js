// The right side: the answer, how it is shown, and what a reader must know of it.

import { isStale, layoutFor, resultState } from "./actions.js";
import { laidOut, possible, codeText } from "./answer.js";
import { chartView } from "./chart.js";
import { button, choice, el, signButton } from "./dom.js";
import { downloadView } from "./download.js";
import { filterWords } from "./filter.js";
import { Grid } from "./grid.js";
import { decimal, number, percent, t } from "./language.js";
import { mapView } from "./map.js";
import { NOISE, fetchRanges } from "./noise.js";
import { axesText, headingOf, title, variableName } from "./names.js";
import { lengthOf } from "./question.js";
import { shareView } from "./share.js";
import { fromTable } from "./tables.js";
import { blockedView, refusalTitle, refusalView } from "./verdict.js";

/** Everything but the chosen cell, which changes more often. */
export function resultView(state, actions, keep) {
  const { answer } = state;
  const failed = answer.status === "failed" ? failedView(state, actions) : null;
  if (!answer.table) return failed ?? (answer.status === "loading" ? loadingView(actions) : emptyView(state, actions));
  const layout = layoutFor(state);
  const view = laidOut(answer.table, { ...state, ...layout });
  const isCurrent = !isStale(state);
  return [
    failed,
    failed ? el("p", { class: "quiet earlier" }, t("earlier")) : null,
    el(
      "div",
      { class: "shown", inert: !isCurrent && Boolean(failed) },
      head(state, actions, layout, failed),
      answer.table.warnings.map((caption) =>
        el("p", { class: "notice warn" }, el("strong", {}, t("warned")), " ", caption),
      ),
      toolbar(state, actions, layout),
      body(state, actions, view, keep),
    ),
  ];
}

/** Mark what the result shows: a table that is not that of the choices is dimmed. */
export function markResult(place, state) {
  place.dataset.state = resultState(state);
}

function head(state, actions, layout, isBelow) {
  const {
    answer,
    world: { catalogue },
  } = state;
  const filter = filterWords(answer.query.where, state.world);
  const source = [headingOf(catalogue), catalogue.version, t("size.shown", { n: answer.table.size })];
  return el(
    "header",
    { class: "result-head" },
    el(
      "div",
      {},
      el("h2", { id: isBelow ? "earlier-title" : "result-title", tabindex: "-1" }, title(catalogue, answer.query)),
      filter ? el("p", { class: "only" }, t("where.shown", { filter })) : null,
      el("p", { class: "quiet" }, source.filter(Boolean).join(" · ")),
    ),
    el("div", { class: "row" }, downloadView(state, actions, layout), shareView(state, actions)),
  );
}

function toolbar(state, actions, layout) {
  const can = possible(state.answer.table, layout.rows, layout.columns);
  const values = ["count", "row", "column", "total"].filter((one) => can[one]).map((one) => [one, t(`values.${one}`)]);
  const swap = () => actions.show({ rows: state.columns, columns: state.rows, sort: null });
  return el(
    "div",
    { class: "toolbar", role: "group", "aria-label": t("toolbar") },
    tabs(state, actions),
    choice(
      t("values"),
      values,
      can[state.values] ? state.values : "count",
      (chosen) => actions.show({ values: chosen }),
      { data: { key: "values" } },
    ),
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
    el(
      "label",
      { class: "check" },
      el("input", {
        type: "checkbox",
        checked: state.totals,
        data: { key: "totals" },
        on: { change: (event) => actions.show({ totals: event.target.checked, sort: null }) },
      }),
      el("span", {}, t("totals")),
    ),
    signButton("⇄", t("swap"), swap, { class: "sign swap", disabled: isStale(state), data: { key: "swap" } }),
    state.sort ? button(t("sort.none"), () => actions.show({ sort: null }), { data: { key: "unsort" } }) : null,
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
          on: { change: () => actions.show({ view: name, ...(name === "map" ? ratesFirst(state) : {}) }) },
        }),
        el("span", {}, t(`view.${name}`)),
      ),
    ),
  );
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
  return { values, picks: { [other.variable]: first } };
}

function body(state, actions, view, keep) {
  if (state.view === "chart") return chartView(state, view, actions);
  if (state.view === "map" && state.world.settings.geometry) return mapView(state, view, actions);
  return keep(
    () =>
      new Grid(view, state, {
        ask: actions.explain,
        sortBy: (column) => actions.show({ sort: nextSort(state.sort, column) }),
        point: actions.point,
        fetchNoise: (cells) => fetchRanges(state.answer, cells),
      }),
  );
}

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
      value === null ? el("p", {}, t("withheld.long")) : rangeWords(cell, value),
    ),
    signButton("✕", t("close"), close, { data: { key: "cell-close" } }),
  );
}

function rangeWords(cell, value) {
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
    el("p", { class: "quiet" }, t("cell.why")),
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
    table.blockedCount ? blockedView({ blocked: table.blocked, blocked_count: table.blockedCount }) : null,
    el(
      "details",
      { data: { key: "why" } },
      el("summary", {}, t("why.title")),
      el("p", {}, t("why.noise")),
      el("p", {}, t("why.totals")),
      el("p", {}, t("why.percent")),
      catalogue.swapped ? el("p", {}, t("why.swapped")) : null,
      el("p", { class: "quiet" }, table.noise),
    ),
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

/** The first thing that a reader sees: what this is, and tables to begin with. */
function emptyView(state, actions) {
  const offered = examplesOf(state);
  return [
    el("header", { class: "result-head" }, el("h2", { id: "result-title" }, t("empty.title"))),
    el("p", { class: "lead" }, t(state.world.catalogue.from_release ? "empty.lead.release" : "empty.lead")),
    state.world.catalogue.charged ? el("p", { class: "notice" }, t("budget.about")) : null,
    el(
      "ol",
      { class: "steps" },
      ["pick", "place", "show"].map((step) =>
        el("li", {}, el("strong", {}, t(`step.${step}`)), el("span", {}, t(`step.${step}.more`))),
      ),
    ),
    offered.length ? el("h3", {}, t("empty.examples")) : null,
    el(
      "ul",
      { class: "offers" },
      offered.map(({ caption, members, price }, k) =>
        el(
          "li",
          {},
          button(
            [...caption, price ? el("small", { class: "price" }, t("budget.cost", { price: decimal(price) })) : null].filter(Boolean),
            () => actions.open(members),
            { class: "offer", data: { key: `example-${k}` } },
          ),
        ),
      ),
    ),
  ];
}

/** The examples: where tables are charged, only those that the budget pays, each with its price. */
function examplesOf(state) {
  if (!state.world.catalogue.charged) return examples(state);
  return examples(state)
    .map((one, k) => ({ ...one, ...state.prices[k] }))
    .filter((one) => one.price !== undefined);
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
        el("strong", {}, table.title || title(catalogue, { unit: table.unit, axes })),
        el("small", {}, axesText(catalogue, { axes }).join(" × ")),
      ],
      members,
    }));
}
