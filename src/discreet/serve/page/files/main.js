// The start: asks the server what there is, restores the link, and ties each view to the part of the state it shows.

import { isStale, makeActions } from "./actions.js";
import * as api from "./api.js";
import { axesView } from "./axes.js";
import { unitView, variablesView } from "./builder.js";
import { makeCodelists } from "./codelists.js";
import { editCodes } from "./codes.js";
import { button, choice, el, replace } from "./dom.js";
import { jobsView } from "./jobs.js";
import { LANGUAGES, labelledIn, preferred, speak, t } from "./language.js";
import { layoutIn, read } from "./link.js";
import { headingOf, title } from "./names.js";
import { queryOf, variableOf } from "./question.js";
import { makePointer } from "./noise.js";
import { cellView, examples, markResult, notesView, resultView, waitingView } from "./result.js";
import { blank, makeStore } from "./store.js";
import { tablesView } from "./tables.js";
import { THEMES, applyTheme, keptTheme } from "./theme.js";
import { signIn, tokenView } from "./token.js";
import { verdictView } from "./verdict.js";

const QUESTION = ["unit", "count", "where", "rows", "columns", "lang", "world"];
const ANSWER = [
  "answer",
  "prices",
  "view",
  "values",
  "texts",
  "totals",
  "sort",
  "picks",
  "noise",
  "chart",
  "levels",
  "whiskers",
  "classes",
  "limits",
  "lang",
  "world",
];
const WIDE = matchMedia("(min-width: 901px)"); // as in the style
const at = (id) => document.getElementById(id);
const store = makeStore(blank());
const actions = Object.assign(makeActions(store), { signIn: () => signIn(renew) });
actions.point = makePointer(() => store.state.answer, actions.announce);
let grid = null;

const places = {};
function frame() {
  for (const name of ["heading", "unit", "variables", "axes", "tables", "verdict"])
    places[name] = el("div", { id: `place-${name}` });
  for (const name of ["waiting", "answer", "cell", "notes", "jobs"]) places[name] = el("div", { id: `place-${name}` });
  replace(
    at("builder"),
    places.heading,
    el("div", { class: "choices" }, places.unit, places.tables, places.variables),
    places.verdict,
  );
  replace(at("result"), places.waiting, places.answer, places.cell, places.notes, places.jobs);
  putShelves();
}

/** Rows and columns are above the table; on a small screen they come before the button, in the order of the steps. */
function putShelves() {
  at("shelves").hidden = !WIDE.matches;
  if (WIDE.matches) at("shelves").append(places.axes);
  else places.verdict.before(places.axes);
}

function drawTop(state) {
  const { catalogue } = state.world;
  at("skip").textContent = t("skip");
  replace(
    at("top"),
    el(
      "div",
      { class: "brand" },
      el("span", { class: "mark", "aria-hidden": "true" }),
      el("div", {}, el("h1", {}, t("page")), el("p", {}, `${catalogue.agency} · ${headingOf(catalogue)}`)),
    ),
    el(
      "div",
      { class: "row options" },
      tokenView(state, renew),
      choice(
        t("language"),
        Object.entries(LANGUAGES),
        state.lang,
        (lang) => {
          speak(lang);
          actions.show({ lang });
          renew();
        },
        { data: { key: "lang" } },
      ),
      choice(
        t("theme"),
        THEMES.map((one) => [one, t(`theme.${one}`)]),
        state.theme,
        (theme) => {
          applyTheme(theme);
          store.change({ theme });
          if (store.state.view === "chart") drawAnswer(store.state); // its colours are those of the page
        },
        { data: { key: "theme" } },
      ),
    ),
  );
  replace(at("bottom"), el("p", {}, catalogue.protection, " ", el("a", { href: "openapi.json" }, t("foot.api"))));
  replace(places.heading, el("h2", { id: "builder-title" }, t("builder")));
}

/** Request everything again: texts differ by language, and trusted users get more. */
async function renew() {
  const { catalogue } = store.state.world;
  catalogue.protection = (await api.catalogue()).protection;
  drawTop(store.state);
  await actions.recallJobs();
  const { answer } = store.state;
  const isCurrent = answer.status === "ready" && answer.table && !isStale(store.state);
  if (isCurrent || answer.problem?.isRefusal || answer.problem?.status === 400) await actions.run({ push: false });
  else actions.preview();
}

function drawQuestion(state) {
  replace(places.unit, unitView(state, actions));
  drawVariables(state);
  replace(
    places.axes,
    axesView(state, actions, (axis) => editCodes(axis, store, actions), WIDE.matches),
  );
  replace(places.tables, tablesView(state, actions));
}

function drawVariables(state) {
  const scrolled = () => [places.variables.querySelector(".variables"), places.variables.parentElement].filter(Boolean);
  const tops = scrolled().map((one) => one.scrollTop);
  replace(
    places.variables,
    variablesView(state, actions, (search) => store.change({ search })),
  );
  if (tops.length === 2) scrolled().forEach((one, k) => Object.assign(one, { scrollTop: tops[k] }));
}

/** A table of the same shape keeps its place while its order or its values change. */
function keepGrid(make) {
  const before = grid;
  grid = make();
  const same =
    before &&
    before.place.isConnected &&
    before.view.table === grid.view.table &&
    before.view.rowCount === grid.view.rowCount &&
    before.view.columnCount === grid.view.columnCount;
  const [top, left] = same ? [before.place.scrollTop, before.place.scrollLeft] : [0, 0];
  if (same) grid.at = before.at;
  queueMicrotask(() => {
    grid.place.scrollTop = top;
    grid.place.scrollLeft = left;
    grid.draw();
  });
  grid.draw();
  return grid.place;
}

/** What tabs, bookmarks and the history call the page: the table that it shows. */
function nameWindow({ answer, world: { catalogue } }) {
  const shown = answer.table ? [title(catalogue, answer.query)] : [];
  document.title = [...shown, t("page"), headingOf(catalogue)].join(" · ");
}

/** The answer is drawn again only where it changes: while it is not that of the choices, it is dimmed. */
function drawLayout(state) {
  const { answer } = state;
  if (answer.table && answer.status !== "failed" && isStale(state)) markResult(at("result"), state);
  else drawAnswer(state);
}

/** Where tables are charged, the prices of the examples; those that the budget does not pay are not shown. */
async function priceExamples() {
  const prices = await Promise.all(
    examples(store.state).map(async ({ members }) => {
      const found = await api.preview(queryOf({ ...store.state, ...members })).catch(() => null);
      return found && !found.refusal && found.budget ? { price: found.budget.price } : {};
    }),
  );
  store.change({ prices });
}

/** A table that is only waited for stays as it is. */
function drawAnswer(state, before = null) {
  markResult(at("result"), state);
  replace(places.waiting, waitingView(state, actions));
  const { answer } = state;
  const isSame = before && ANSWER.every((name) => name === "answer" || state[name] === before[name]);
  const wasShown = before && ["ready", "loading"].includes(before.answer.status) && before.answer.table;
  if (isSame && answer.table && wasShown === answer.table && answer.asked === before.answer.asked && !answer.problem) return;
  nameWindow(state);
  if (state.view !== "table") grid = null;
  replace(places.answer, resultView(state, actions, keepGrid));
  replace(places.notes, notesView(state));
  drawCell(state);
}

function drawCell(state) {
  replace(
    places.cell,
    cellView(state, () => {
      store.change({ cell: null });
      grid?.focusable()?.focus();
    }),
  );
  grid?.mark(state.cell?.index ?? null);
}

function watch() {
  store.watch(["lang", "theme", "world"], drawTop);
  store.watch(QUESTION, drawQuestion);
  store.watch(["search"], drawVariables);
  store.watch([...QUESTION, "preview", "answer", "submitting"], (state) =>
    replace(places.verdict, verdictView(state, actions)),
  );
  store.watch(["rows", "columns", "unit", "count", "where"], (state, before) => {
    if (ANSWER.every((name) => state[name] === before[name])) drawLayout(state);
  });
  store.watch(ANSWER, drawAnswer);
  store.watch(["cell"], drawCell);
  store.watch(["jobs", "lang"], (state) => replace(places.jobs, jobsView(state, actions)));
  addEventListener("popstate", restore);
  addEventListener("beforeprint", () => grid?.print(true));
  addEventListener("afterprint", () => grid?.print(false));
  WIDE.addEventListener("change", () => {
    putShelves();
    drawQuestion(store.state);
  });
  addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
  addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]"))
      if (!menu.contains(event.target)) menu.open = false;
  });
}

/** Show what the address describes. A link never spends a reader's budget: where answers are charged, the reader decides. */
async function restore() {
  const { world } = store.state;
  const saved = new URLSearchParams(location.search).get("q");
  const members =
    location.hash.length > 1 ? read(location.hash, world.catalogue) : saved ? await fromSaved(saved) : null;
  if (!members) {
    store.change({
      rows: [],
      columns: [],
      where: "",
      count: "",
      unit: world.catalogue.units[0],
      answer: { status: "none" },
      preview: { status: "none" },
      cell: null,
    });
    if (world.catalogue.charged) await priceExamples();
    return;
  }
  const { shown, ...rest } = members;
  if (rest.lang) speak(rest.lang);
  store.change({ ...rest, answer: { status: "none" }, cell: null });
  if (shown && !world.catalogue.charged) await actions.restoreTable();
  else actions.preview();
}

async function fromSaved(name) {
  try {
    const { query, extra } = await api.saved(name);
    const axes = query.axes.map((axis) => ({ codes: [], groups: {}, ...axis }));
    const across = extra.columns || [];
    const order = (names) => (a, b) => names.indexOf(variableOf(a)) - names.indexOf(variableOf(b));
    const columns = axes.filter((axis) => across.includes(variableOf(axis))).sort(order(across));
    const rows = axes.filter((axis) => !columns.includes(axis)).sort(order(extra.rows || []));
    return {
      unit: query.unit,
      where: query.where || "",
      count: query.count || "",
      rows,
      columns,
      ...layoutIn(extra),
      lang: extra.lang,
      shown: true,
    };
  } catch (problem) {
    actions.tell(problem.message || t("unreachable"));
    return null;
  }
}

const redraw = () => store.change({ world: { ...store.state.world } });

async function start() {
  const theme = keptTheme();
  applyTheme(theme);
  speak(preferred(navigator.languages));
  frame();
  try {
    const [catalogue, settings] = await Promise.all([api.catalogue(), api.settings()]);
    labelledIn(settings.language);
    watch();
    store.change({
      world: { catalogue, settings, codelists: makeCodelists(redraw) },
      unit: catalogue.units[0],
      lang: document.documentElement.lang,
      theme,
    });
    await restore();
    actions.recallJobs();
    document.documentElement.dataset.ready = "yes";
  } catch (problem) {
    replace(places.answer, notStarted(problem));
    if (problem.status === 401) signIn(() => location.reload());
  }
}

function notStarted(problem) {
  const isClosed = problem.status === 401;
  return el(
    "div",
    { class: "notice bad" },
    el("h2", { id: "result-title" }, t(isClosed ? "token.title" : "failed.title")),
    el("p", { role: "alert" }, problem.message || t("unreachable")),
    isClosed
      ? button(t("token"), () => signIn(() => location.reload()), { data: { key: "token" } })
      : button(t("again"), () => location.reload(), { data: { key: "again" } }),
  );
}

start();
