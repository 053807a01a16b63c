// Tables that are made in the background: how far they are, and where to get them.

import { el } from "./dom.js";
import { number, t } from "./language.js";
import { title } from "./names.js";

/** The list of jobs; nothing where there are none. */
export function jobsView(state) {
  if (!state.jobs.length) return null;
  return el(
    "section",
    { class: "jobs", "aria-labelledby": "jobs-title" },
    el("h2", { id: "jobs-title" }, t("jobs.title")),
    el(
      "ul",
      {},
      state.jobs.slice(0, 10).map((job) => line(state, job)),
    ),
  );
}

function line(state, job) {
  const words = `${title(state.world.catalogue, job.query)} · ${t(`format.${job.format}`)}`;
  return el("li", {}, el("span", {}, words), end(job, words));
}

function end(job, words) {
  if (job.state === "done")
    return el("a", { href: job.result.replace(/^\//, ""), download: true, class: "button small" }, t("job.download"));
  if (job.state === "failed") return el("span", { class: "bad", lang: "en" }, job.words);
  return el(
    "span",
    { class: "row" },
    el("progress", { max: "1", value: job.progress, "aria-label": words }),
    el("span", { class: "quiet" }, job.state === "queued" ? t("job.queued") : `${number(100 * job.progress)} %`),
  );
}
