// The actions of a user: they change the state, and ask the server where needed.

import { parsed } from "./answer.js";
import * as api from "./api.js";
import { afterDrawing, handOver } from "./dom.js";
import { keepJobs, keptJobs } from "./kept_jobs.js";
import { number, t } from "./language.js";
import { fragmentOf } from "./link.js";
import { title } from "./names.js";
import { axesOf, cellsOf, laidOut, queryOf, sameness, taken, variableOf } from "./question.js";

const PATIENCE = 350; // milliseconds without a change before the table or its preview is requested
const AFTER = 30; // milliseconds after a drawing until the address is written
const POLL = 1000; // milliseconds between two questions after a job
const TOLD = 8000; // milliseconds that a message stays
const SMALL_SCREEN = 900; // pixels, as in the style
const UNFINISHED = ["queued", "running"];

/** Everything that can be done with a store. */
export function makeActions(store) {
  let previewing = null;
  let running = null;
  let timer = 0;
  let telling = 0;
  let cancelAddress = null;
  let lastShown = ""; // the address of the table on the screen

  /** Announce a message to screen readers. */
  function announce(caption) {
    const live = document.getElementById("live");
    live.classList.remove("toast");
    live.textContent = caption;
  }

  /** Show a message to all users, for a while. */
  function tell(caption) {
    const live = document.getElementById("live");
    live.textContent = caption;
    live.classList.add("toast");
    clearTimeout(telling);
    telling = setTimeout(() => live.classList.remove("toast"), TOLD);
  }

  /** What a promise brings; where it fails, nothing, and a message shows why. */
  async function trying(promise) {
    try {
      return await promise;
    } catch (problem) {
      tell(problem.message || t("unreachable"));
      return null;
    }
  }

  /** Change the question; the table follows shortly after, or what it would cost, or that it takes long. */
  function ask(members) {
    store.change({ ...members });
    keepLink();
    const { answer, preview: last } = store.state;
    if (sameness(queryOf(store.state)) === answer.asked && answer.status === "ready") return; // another layout of it
    running?.abort();
    const given = answer.status === "loading" ? { answer: { ...answer, status: answer.table ? "ready" : "none" } } : {};
    store.change({ preview: { ...last, status: "loading" }, ...given });
    clearTimeout(timer);
    timer = setTimeout(settle, PATIENCE);
  }

  /** Make the table that the choices describe where that is free and quick, else show what it would be like. */
  function settle() {
    clearTimeout(timer);
    if (isLive(store.state)) return run({ isLive: true });
    previewing?.abort();
    return preview();
  }

  /** Change how the answer is shown. */
  function show(members) {
    store.change(members);
    keepLink();
  }

  /** Write the address after what has changed is on the screen: the browser takes longer for it than for the drawing. */
  function keepLink() {
    if (store.state.answer.status === "ready" && !isStale(store.state)) lastShown = fragmentOf(store.state);
    cancelAddress ??= afterDrawing(() => {
      cancelAddress = null;
      history.replaceState(null, "", fragmentOf(store.state));
    }, AFTER);
  }

  /** Start a new entry of the history; the last one gets back the address of the table that was shown in it. */
  function enter() {
    cancelAddress?.();
    cancelAddress = null;
    if (lastShown) history.replaceState(null, "", lastShown);
    history.pushState(null, "", fragmentOf(store.state));
  }

  async function preview() {
    previewing?.abort();
    previewing = new AbortController();
    const query = queryOf(store.state);
    if (!query.axes.length) {
      store.change({ preview: { status: "none" } });
      return;
    }
    try {
      const { signal } = previewing;
      const found = await api.preview(query, signal);
      store.change({ preview: { status: "ready", found } });
      // tables that would pass take longer to find: they arrive after the refusal is shown
      if (found.refusal) store.change({ preview: { status: "ready", found: await api.nearest(query, signal) } });
    } catch (problem) {
      if (problem.name !== "AbortError") store.change({ preview: { status: "failed", problem } });
    }
  }

  /** Get the table. It is a new entry of the history, so that "back" brings the last table back. */
  async function run({ push = true, isLive: live = false } = {}) {
    running?.abort();
    clearTimeout(timer);
    running = new AbortController();
    const query = queryOf(store.state);
    const earlier = store.state.answer;
    store.change({ answer: { ...earlier, status: "loading", problem: null }, cell: null });
    if (push) enter();
    announce(t("loading"));
    try {
      const table = parsed(await api.table(query, running.signal));
      take(table, query, store.state.answer.asked === sameness(query) ? store.state.sort : keptSort(store.state));
      if (!live) bringIntoSight(push);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      const { asked, ...last } = earlier; // the earlier table stays, dimmed
      store.change({ answer: { ...last, asked: "", status: "failed", problem, failed: sameness(query) } });
      if (live) announce(problem.message || t("unreachable"));
      else document.getElementById("problem-title")?.focus();
    }
  }

  /** Give up waiting; the table that was there before stays. */
  function stop() {
    running?.abort();
    const { answer } = store.state;
    store.change({ answer: { ...answer, status: answer.table ? "ready" : "none" } });
    announce(t("stopped"));
  }

  function take(table, query, sort) {
    store.change({ answer: answered(table, query), sort });
    keepLink();
    announce(t("announce.table", { title: title(store.state.world.catalogue, query), cells: number(table.size) }));
    if (!isLive(store.state)) preview();
  }

  /** Show the table from its title on; on a small screen it is below the choices. Where a button was pressed that is gone
   * now, the title has the focus. */
  function bringIntoSight(isPressed = true) {
    const title = document.getElementById("result-title");
    const isWide = window.innerWidth > SMALL_SCREEN;
    if (!title || (isWide && !isPressed)) return;
    const isLost = !document.activeElement || document.activeElement === document.body;
    if (isLost || !isWide) title.focus({ preventScroll: true });
    if (isWide) window.scrollTo(0, 0);
    else document.getElementById("result").scrollIntoView({ block: "start" });
  }

  /** A link's order of rows holds for its own table; a new question starts in the order of the codes. */
  const keptSort = (state) => (state.answer.asked ? null : state.sort);

  function answered(table, query) {
    const { rows, columns } = store.state;
    return {
      status: "ready",
      table,
      query,
      asked: sameness(query),
      rows: rows.map(variableOf),
      columns: columns.map(variableOf),
    };
  }

  /** Take over a ready question, and show its table; where tables are charged, its price first. */
  function open(members) {
    store.change({ ...members, preview: { status: "loading" } });
    keepLink();
    if (!store.state.world.catalogue.charged) return run();
    return preview().then(() => document.querySelector('[data-key="run"]')?.focus());
  }

  /** Take over a table that the server offers instead of a refused one. */
  const takeOffer = (query) => open(taken(store.state, query));

  /** Ask what a cell's noise may have done. */
  async function explain(index) {
    const { answer } = store.state;
    store.change({ cell: { index, status: "loading" } });
    try {
      const found = await api.ranges(answer.query, [index]);
      if (store.state.cell?.index === index)
        store.change({ cell: { index, status: "ready", level: found.level, range: found.ranges[0] } });
    } catch (problem) {
      if (store.state.cell?.index === index) store.change({ cell: { index, status: "failed", problem } });
    }
  }

  /** Have a large table made in the background. */
  async function submit(format) {
    store.change({ submitting: true });
    try {
      const job = await api.submit(queryOf(store.state), format);
      if (!api.hasToken()) keepJobs([job.id, ...keptJobs()]);
      store.change({ jobs: [job, ...store.state.jobs] });
      tell(t("job.begun"));
      follow(job.id);
    } catch (problem) {
      store.change({ answer: { ...store.state.answer, status: "failed", problem, failed: "" } });
      document.getElementById("problem-title")?.focus();
    }
    store.change({ submitting: false });
  }

  async function follow(id) {
    const job = await api.job(id).catch((problem) => (problem.status === 404 ? { gone: true } : null));
    if (job?.gone || !store.state.jobs.some((one) => one.id === id)) return; // given up in the meantime
    if (!job) {
      setTimeout(() => follow(id), 5 * POLL);
      return;
    }
    store.change({ jobs: store.state.jobs.map((one) => (one.id === id ? job : one)) });
    if (UNFINISHED.includes(job.state)) setTimeout(() => follow(id), POLL);
    else tell(t(`job.${job.state}`));
  }

  /** The jobs that this reader left here before. */
  async function recallJobs() {
    const jobs = await (api.hasToken() ? api.jobs().catch(() => []) : recalled());
    store.change({ jobs });
    for (const job of jobs) if (UNFINISHED.includes(job.state)) follow(job.id);
  }

  /** The state of the jobs that this browser submitted; those that are gone are removed. */
  async function recalled() {
    const gone = (problem) => (problem.status === 404 ? { gone: true } : null);
    const found = await Promise.all(keptJobs().map((id) => api.job(id).catch(gone)));
    keepJobs(keptJobs().filter((_, place) => !found[place]?.gone));
    return found.filter((job) => job && !job.gone);
  }

  /** Cancel a job, or delete its result. */
  async function cancelJob(job) {
    if (!(await trying(api.dropJob(job.id)))) return;
    keepJobs(keptJobs().filter((id) => id !== job.id));
    store.change({ jobs: store.state.jobs.filter((one) => one.id !== job.id) });
    announce(t("job.dropped"));
  }

  /** Show the table that a job has made. */
  async function openJob(job) {
    store.change({ answer: { ...store.state.answer, status: "loading" }, cell: null });
    try {
      const table = parsed(await api.jobTable(job.id));
      const isSame = sameness(queryOf(store.state)) === sameness(job.query);
      if (!isSame) store.change(opened(job.query));
      take(table, queryOf(store.state), null);
      bringIntoSight();
    } catch (problem) {
      store.change({ answer: { ...store.state.answer, status: "failed", problem, failed: "" } });
    }
  }

  /** The job that has made the table of the present question, where there is one. */
  const madeBefore = () =>
    store.state.jobs.find(
      (job) =>
        job.state === "done" && job.format === "json-stat" && sameness(job.query) === sameness(queryOf(store.state)),
    );

  /** Show the table of a link: one that is too large for an answer at once only if a job has made it. */
  async function restoreTable() {
    const isLarge = cellsOf(store.state) > store.state.world.catalogue.limits.cells;
    if (!isLarge || api.hasToken()) return run({ push: false });
    await recallJobs();
    return madeBefore() ? openJob(madeBefore()) : preview();
  }

  /** The question of a job, laid out as any question that comes without a layout. */
  function opened(query) {
    const axes = query.axes.map((axis) => ({ codes: [], groups: {}, ...axis }));
    const layout = laidOut(axes, store.state.world.catalogue);
    return { unit: query.unit, where: query.where || "", count: query.count || "", ...layout };
  }

  async function fetchJob(job) {
    const file = await trying(api.jobFile(job.id));
    if (file) handOver(file.blob, file.name);
  }

  return {
    current: () => store.state,
    ask,
    show,
    run,
    stop,
    open,
    takeOffer,
    bringIntoSight,
    explain,
    submit,
    recallJobs,
    restoreTable,
    cancelJob,
    openJob,
    fetchJob,
    preview,
    announce,
    tell,
    trying,
  };
}

/** The layout of the answer: the present one, unless the question has been changed since. */
export function layoutFor(state) {
  const { answer } = state;
  if (sameness(queryOf(state)) !== answer.asked) return { rows: answer.rows, columns: answer.columns };
  return { rows: state.rows.map(variableOf), columns: state.columns.map(variableOf) };
}

/** Whether the question has been changed since the answer. */
export const isStale = (state) => Boolean(state.answer.table) && sameness(queryOf(state)) !== state.answer.asked;

/** Whether the table follows each choice: not where it is charged, nor where it takes a job. */
export function isLive(state) {
  const { catalogue } = state.world;
  const isSmall = cellsOf(state) <= catalogue.limits.cells || api.hasToken();
  return axesOf(state).length > 0 && !catalogue.charged && isSmall;
}

/** What the result shows, for styles and tests: none, stale, loading, ready or failed. */
export function resultState(state) {
  const { answer } = state;
  const asked = sameness(queryOf(state));
  if (answer.status === "failed") return answer.failed === asked || !answer.failed ? "failed" : "stale";
  if (answer.status === "loading") return "loading";
  if (answer.table) return asked === answer.asked ? "ready" : "stale";
  return isLive(state) ? "stale" : "none";
}
