// The start: asks the server what there is, restores the link, and ties each view to the part of the state it shows.

import { isStale, makeActions, resultState } from "./actions.js";
import * as api from "./api.js";
import { axesView } from "./axes.js";
import { unitView, variablesView } from "./builder.js";
import { makeCodelists } from "./codelists.js";
import { afterDrawing, button, choice, el, replace } from "./dom.js";
import { makeFinder } from "./finding.js";
import { jobsView } from "./jobs.js";
import { LANGUAGES, labelledIn, learn, listed, preferred, speak, t } from "./language.js";
import { layoutIn, read } from "./link.js";
import { mineView, watchKeys } from "./mine.js";
import { headingOf, officeOf, title } from "./names.js";
import { axesOf, queryOf, variableOf } from "./question.js";
import { panelView, restorePanel, watchFull } from "./screen.js";
import { examples, loadStart, startView } from "./start.js";
import { blank, makeStore } from "./store.js";
import { tablesView } from "./tables.js";
import { THEMES, applyTheme, keptTheme } from "./theme.js";
import { signIn, tokenView } from "./token.js";
import { refusedView, verdictView } from "./verdict.js";
import { makeVisits } from "./visits.js";

const QUESTION = ["unit", "count", "where", "rows", "columns", "lang", "world"];
const ANSWER = [
  "answer",
  "start",
  "prices",
  "view",
  "values",
  "base",
  "counts",
  "top",
  "zeros",
  "singles",
  "closed",
  "density",
  "marked",
  "second",
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
const FIXED = ["answer", "prices", "view", "lang", "world", "rows", "columns"]; // a table with the same ones is only filled again
const WIDE = matchMedia("(min-width: 901px)"); // as in the style
const at = (id) => document.getElementById(id);
const store = makeStore(blank());
const actions = Object.assign(makeActions(store), { signIn: () => signIn(renew) });
const find = makeFinder(store);
let result = null; // the views of tables, which come after the first view
let loading = null;
let starting = null; // the data of the start page
actions.redraw = () => drawAnswer(store.state);
const visits = makeVisits(store, actions, () => replace(places.mine, mineView(visits)));
actions.addLink = visits.addLink;
let grid = null;
const drawnFrom = new Map(); // a place -> what it was drawn from

let cancelNote = () => {}; // all changes of an event are one step
const places = { mine: el("div", { id: "place-mine" }) };
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

/** Get the views of tables, and draw again. */
function needResult() {
  loading ??= import("./result.js").then((found) => {
    result = found;
    actions.point = found.pointer(() => store.state.answer, actions.announce);
    drawAnswer(store.state);
    if (starting && store.state.answer.table) actions.bringIntoSight(); // opened on the start page, and drawn only now
  });
}

const editCodes = async (...given) => (await import("./codes.js")).editCodes(...given);

/** Mark what the result shows: a table that is not that of the choices is dimmed. */
function markResult(state) {
  at("result").dataset.state = resultState(state);
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
      el("div", {}, el("h1", {}, t("page")), el("p", {}, [officeOf(catalogue), headingOf(catalogue)].filter(Boolean).join(" · "))),
    ),
    el(
      "div",
      { class: "row options" },
      places.mine,
      tokenView(state, renew),
      choice(
        t("language"),
        Object.entries(LANGUAGES),
        state.lang,
        async (lang) => {
          await speak(lang);
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
  replace(
    at("bottom"),
    el("p", {}, t(catalogue.adds_up ? "why.sums" : "why.noise"), " ", el("a", { href: "api", data: { key: "api" } }, t("foot.api"))),
    el("details", { data: { key: "exact" } }, el("summary", {}, t("foot.exact")), el("p", {}, catalogue.protection), el("p", {}, catalogue.noise)),
  );
  replace(places.mine, mineView(visits));
  replace(places.heading, el("h2", { id: "builder-title" }, t("builder")), panelView());
}

/** Request everything again: texts differ by language, and trusted users get more. */
async function renew() {
  const catalogue = await api.catalogue();
  store.change({ world: { ...store.state.world, catalogue, codelists: makeCodelists(redraw) }, found: null });
  find();
  await actions.recallJobs();
  const { answer } = store.state;
  if (answer.status === "none") await loadStart(store);
  const isCurrent = answer.status === "ready" && answer.table && !isStale(store.state);
  if (isCurrent || answer.problem?.isRefusal || answer.problem?.status === 400) await actions.run({ push: false });
  else actions.preview();
}

/** Draw a place where what it is drawn from has changed: building its elements takes longer than laying out a table. */
function drawWhereChanged(name, parts, make) {
  const before = drawnFrom.get(name);
  if (before && parts.every((part, k) => part === before[k])) return;
  drawnFrom.set(name, parts);
  replace(places[name], make());
}

function drawQuestion(state) {
  const { unit, count, where, lang, world } = state;
  drawWhereChanged("unit", [unit, count, where, lang, world], () => unitView(state, actions));
  drawVariables(state);
  replace(
    places.axes,
    axesView(state, actions, (axis) => editCodes(axis, store, actions), WIDE.matches),
  );
  drawWhereChanged("tables", [lang, world], () => tablesView(state, actions));
}

/** The list of variables shows which ones the table has, not where. */
function drawVariables(state) {
  const { unit, search, found, about, lang, world } = state;
  const axes = axesOf(state).map((axis) => JSON.stringify(axis)).sort().join();
  drawWhereChanged("variables", [unit, search, found, about, lang, world, axes], () =>
    variablesView(state, actions, (members) => store.change(members), (axis, back) => editCodes(axis, store, actions, back)),
  );
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
  if (same) grid.at = before.at;
  if (before) grid.room = same ? before.room : { ...before.room, scrollTop: 0, scrollLeft: 0 }; // so that the first drawing is the last
  const { scrollTop, scrollLeft } = grid.room;
  if (scrollTop || scrollLeft) queueMicrotask(() => Object.assign(grid.place, { scrollTop, scrollLeft })); // when it is in the document
  grid.draw();
  return grid.place;
}

/** What tabs, bookmarks and the history call the page: the table that it shows. */
function nameWindow({ answer, world: { catalogue } }) {
  const shown = answer.table ? [title(catalogue, answer.query)] : [];
  const name = [...shown, t("page"), headingOf(catalogue)].join(" · ");
  if (document.title !== name) document.title = name;
}

/** The answer is drawn again only where it changes: while it is not that of the choices, it is dimmed. */
function drawLayout(state, before) {
  const { answer } = state;
  if (answer.table && answer.status !== "failed" && isStale(state)) markResult(state);
  else drawAnswer(state, before, true);
}

/** Ask the server about the examples: those that are refused, or that a budget does not pay, are not shown. */
async function judgeExamples() {
  const prices = await Promise.all(
    examples(store.state).map(async ({ members }) => {
      const found = await api.preview(queryOf({ ...store.state, ...members })).catch(() => null);
      if (!found || found.refusal) return { isRefused: Boolean(found) };
      return found.budget ? { price: found.budget.price, left: found.budget.left } : {};
    }),
  );
  if (store.state.answer.status === "none") store.change({ prices });
}

/** A table that is only waited for stays as it is, unless its rows and columns have moved. */
function drawAnswer(state, before = null, isMoved = false) {
  const { answer } = state;
  if (answer.status === "none" && !answer.table) {
    drawStart(state);
    return;
  }
  if (!result) {
    needResult();
    return;
  }
  markResult(state);
  replace(places.waiting, result.waitingView(state, actions));
  const isSame = before && !isMoved && ANSWER.every((name) => name === "answer" || state[name] === before[name]);
  const wasShown = before && ["ready", "loading"].includes(before.answer.status) && before.answer.table;
  if (isSame && answer.table && wasShown === answer.table && answer.asked === before.answer.asked && !answer.problem) return;
  nameWindow(state);
  if (state.view !== "table") grid = null;
  if (before && grid?.place.isConnected && FIXED.every((name) => state[name] === before[name])) {
    result.updateResult(places.answer, state, actions, grid);
    drawCell(state);
    return;
  }
  replace(places.answer, result.resultView(state, actions, keepGrid));
  if (!before || ["answer", "lang", "world"].some((name) => state[name] !== before[name])) replace(places.notes, result.notesView(state));
  drawCell(state);
}

/** What is shown while there is no table. */
function drawStart(state) {
  markResult(state);
  nameWindow(state);
  grid = null;
  for (const name of ["waiting", "cell", "notes"]) replace(places[name]);
  replace(places.answer, refusedView(state, actions) ?? startView(state, actions));
}

function drawCell(state) {
  if (!result) return;
  replace(
    places.cell,
    result.cellView(state, () => {
      store.change({ cell: null });
      grid?.focusable()?.focus();
    }),
  );
  grid?.mark(state.cell?.index ?? null);
}

function watch() {
  store.watch(["lang", "theme", "world"], drawTop);
  store.watch(QUESTION, drawQuestion);
  store.watch(["search", "found", "about"], drawVariables);
  store.watch(["search", "unit"], find);
  store.watch([...QUESTION, "preview", "answer", "submitting"], (state) =>
    replace(places.verdict, verdictView(state, actions)),
  );
  store.watch(["rows", "columns", "unit", "count", "where"], (state, before) => {
    if (ANSWER.every((name) => state[name] === before[name])) drawLayout(state, before);
  });
  store.watch(ANSWER, drawAnswer);
  store.watch(["preview"], (state, before) => {
    const isStart = state.answer.status === "none" && !state.answer.table;
    if (isStart && (state.preview.found?.refusal || before.preview.found?.refusal)) drawStart(state);
  });
  store.watch(["cell"], drawCell);
  store.watch([...QUESTION, ...ANSWER], () => {
    cancelNote();
    cancelNote = afterDrawing(() => {
      visits.noteTable();
      visits.note();
    });
  });
  watchKeys(visits);
  watchFull(actions.redraw);
  store.watch(["jobs", "lang"], (state) => replace(places.jobs, jobsView(state, actions)));
  addEventListener("popstate", restore);
  addEventListener("beforeprint", () => grid?.print(true));
  addEventListener("afterprint", () => grid?.print(false));
  WIDE.addEventListener("change", () => {
    putShelves();
    drawQuestion(store.state);
  });
  addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector("details.menu[open], details.more[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
  addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open], details.more[open]"))
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
    starting = loadStart(store);
    if (world.catalogue.charged) await judgeExamples();
    return;
  }
  const { shown, missing = [], ...rest } = members;
  if (rest.lang && rest.lang !== store.state.lang) await speakAgain(rest.lang);
  store.change({ ...rest, answer: { status: "none" }, cell: null });
  if (shown && !world.catalogue.charged) await actions.restoreTable();
  else actions.preview();
  if (missing.length) actions.tell(t("link.missing", { names: listed(missing) })); // after the table is announced
}

/** Another language than that of the page: its texts, and the labels of the office in it. */
async function speakAgain(lang) {
  await speak(lang);
  const catalogue = await api.catalogue();
  store.change({ world: { ...store.state.world, catalogue, codelists: makeCodelists(redraw) }, lang });
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

/** The catalogue and the settings: those in the page itself, if they have the reader's language and there is no token. */
async function firstAnswers(first) {
  if (first.language === document.documentElement.lang && !api.hasToken()) return first;
  const [catalogue, settings] = await Promise.all([api.catalogue(), api.settings()]);
  return { catalogue, settings };
}

async function start() {
  const theme = keptTheme();
  applyTheme(theme);
  const first = JSON.parse(at("first").textContent);
  learn(first.language, first.texts);
  await speak(preferred(navigator.languages)).catch(() => speak(first.language));
  restorePanel();
  frame();
  try {
    const { catalogue, settings } = await firstAnswers(first);
    labelledIn(settings.languages);
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
    await starting; // on a slow line the views of tables would delay it
    needResult();
    if (starting && !catalogue.charged) judgeExamples();
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
