// Tables that are made in the background: how far they are, and ways to look at them, to get them or to give them up.

import { button, el } from "./dom.js";
import { number, t } from "./language.js";
import { title } from "./names.js";

const MOST = 10; // jobs that are listed
const OPEN = "json-stat"; // the format that the page itself can show

/** The list of jobs; nothing where there are none. */
export function jobsView(state, actions) {
  if (!state.jobs.length) return null;
  return el(
    "section",
    { class: "jobs", "aria-labelledby": "jobs-title" },
    el("h2", { id: "jobs-title" }, t("jobs.title")),
    el(
      "ul",
      {},
      state.jobs.slice(0, MOST).map((job) => line(state, job, actions)),
    ),
  );
}

function line(state, job, actions) {
  const caption = title(state.world.catalogue, job.query);
  const form = job.format === OPEN ? "" : ` · ${t(`format.${job.format}`)}`;
  return el("li", { data: { job: job.id } }, el("span", {}, caption + form), end(job, caption, actions));
}

function end(job, caption, actions) {
  if (job.state === "done") return el("span", { class: "row" }, doneButtons(job, caption, actions));
  if (job.state === "failed") return el("span", { class: "bad" }, job.words || t("job.failed"));
  return el(
    "span",
    { class: "row" },
    el("progress", { max: "1", value: job.progress, "aria-label": caption }),
    el("span", { class: "quiet" }, job.state === "queued" ? t("job.queued") : `${number(100 * job.progress)} %`),
    press(t("cancel"), () => actions.cancelJob(job), `cancel-${job.id}`, caption),
  );
}

function doneButtons(job, caption, actions) {
  return [
    job.format === OPEN ? press(t("job.open"), () => actions.openJob(job), `open-${job.id}`, caption) : null,
    press(t("job.download"), () => actions.fetchJob(job), `fetch-${job.id}`, caption),
    press(t("job.drop"), () => actions.cancelJob(job), `cancel-${job.id}`, caption),
  ];
}

const press = (text, act, key, caption) =>
  button(text, act, { class: "small", "aria-label": `${text}: ${caption}`, data: { key } });
