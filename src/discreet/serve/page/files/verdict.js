// What is known before the table is made: its size, areas that would be withheld, a refusal with its way out; and the
// button that makes it.

import { button, choice, el } from "./dom.js";
import { isLive } from "./actions.js";
import { decimal, labelLang, number, t } from "./language.js";
import { axesText, title } from "./names.js";
import { axesOf, cellsOf, queryOf, sameness } from "./question.js";

const SHOWN = 200; // areas that are listed
const NEAR = 0.1; // least share of the largest table at which readers see how near they are
const FORMATS = ["json-stat", "csv", "xlsx", "parquet", "px", "sdmx-csv"]; // the first is shown on the page

/** The bar under the choices. */
export function verdictView(state, actions) {
  const { preview } = state;
  const isBlank = !axesOf(state).length && !state.world.catalogue.charged;
  if (isLive(state) || isBlank) return liveView(state, actions);
  const found = preview.status !== "none" ? preview.found : null;
  return el(
    "div",
    { class: "verdict" },
    sizeLine(state, found),
    preview.status === "failed" ? failedLine(preview.problem, actions) : null,
    found?.blocked_count && !found.refusal ? blockedView(found) : null,
    found?.refusal && !isTold(state) ? refusalView(state, found.refusal, found.refusal.words, actions) : null,
    found?.budget ? budgetView(found.budget) : null,
    found?.refusal ? null : runButton(state, found, actions),
  );
}

/** Where the table follows the choices: its size, and on a small screen the way to it. */
function liveView(state, actions) {
  return el(
    "div",
    { class: "verdict" },
    sizeLine(state, null),
    axesOf(state).length
      ? button(t("run.see"), () => actions.bringIntoSight(), { class: "primary run see", data: { key: "see" } })
      : null,
  );
}

/** Whether the refusal is already shown in place of the table. */
const isTold = ({ answer, ...state }) =>
  (answer.status === "none" && !answer.table) ||
  (answer.status === "failed" && answer.problem.isRefusal && answer.failed === sameness(queryOf(state)));

/** A refusal that is known before anything was shown, in place of the start page. */
export function refusedView(state, actions) {
  const found = axesOf(state).length && state.preview.status === "ready" ? state.preview.found : null;
  if (!found?.refusal) return null;
  return [
    el("header", { class: "result-head" }, el("h2", { id: "result-title" }, refusalTitle(found.refusal))),
    refusalView(state, found.refusal, found.refusal.words, actions, true),
  ];
}

function sizeLine(state, found) {
  if (!axesOf(state).length) return el("p", { class: "size quiet" }, t("size.none"));
  const cells = cellsOf(state);
  const limits = state.world.catalogue.limits;
  const share = Math.min(1, cells / limits.cells);
  return el(
    "div",
    { class: "size", "aria-busy": String(state.preview.status === "loading") },
    el(
      "p",
      {},
      el("strong", { data: { cells } }, number(cells)),
      ` ${t("size.cells", { n: cells, cells })}`,
      found?.areas ? ` · ${t("size.areas", { n: found.areas })}` : "",
    ),
    share < NEAR
      ? null
      : el(
          "div",
          {
            class: `meter ${cells > limits.cells ? "over" : ""}`,
            "aria-hidden": "true",
            title: t("size.most", { most: limits.cells }),
          },
          el("i", { style: { width: `${100 * share}%` } }),
        ),
    cells > limits.cells
      ? el(
          "p",
          { class: "quiet" },
          cells > limits.job_cells ? t("size.over", { most: limits.job_cells }) : t("size.job", { most: limits.cells }),
        )
      : null,
  );
}

const isShort = (found) => Boolean(found?.budget && found.budget.price > found.budget.left);

/** The cost of the table and what is left: shown before, because it cannot be undone. */
function budgetView({ price, left, whole }) {
  const short = price > left;
  const caption = price ? t("budget.price", { price: decimal(price) }) : t("budget.free");
  return el(
    "div",
    { class: `notice budget ${short ? "bad" : ""}`, data: { price, left } },
    el("p", {}, el("strong", {}, caption)),
    el("progress", { max: String(whole), value: String(Math.max(0, left)), "aria-label": t("budget.meter") }),
    el("p", {}, t(short ? "budget.short" : "budget.left", { left: decimal(left), whole: decimal(whole) })),
  );
}

function failedLine(problem, actions) {
  return el(
    "div",
    { class: "notice bad" },
    el("p", { role: "alert" }, problem.message || t(problem.status ? "failed" : "unreachable")),
    problem.status === 401
      ? button(t("token"), () => actions.signIn(), { class: "small", data: { key: "preview-token" } })
      : button(t("again"), () => actions.preview(), { class: "small", data: { key: "preview-again" } }),
  );
}

/** Areas that the table would not show. */
export function blockedView(found) {
  const { blocked, blocked_count: listed, withheld_areas: count, areas } = found;
  return el(
    "details",
    { class: "notice warn", data: { key: "blocked" } },
    el("summary", {}, areas && count ? t("blocked.of", { count, all: areas }) : t("blocked", { n: listed })),
    areaList(blocked, listed),
  );
}

/** Some areas by name, with the rule that blocks each. */
function areaList(areas, count) {
  const line = (area) =>
    el(
      "li",
      {},
      el("span", { lang: labelLang() }, area.label),
      area.label === area.code ? null : [" ", el("code", {}, area.code)],
      el("span", { class: "quiet" }, ` ${t(`rule.${area.rule}`)}`),
    );
  const more = count - Math.min(SHOWN, areas.length);
  return el(
    "ul",
    { class: "areas" },
    areas.slice(0, SHOWN).map(line),
    more > 0 ? el("li", { class: "quiet" }, t("areas.more", { n: more })) : null,
  );
}

const OWN_TITLES = ["not_published", "budget"];

/** What a refusal is called: a table missing from a release and a used budget break no rule. */
export const refusalTitle = (refusal) => t(OWN_TITLES.includes(refusal.rule) ? `refused.${refusal.rule}` : "refused");

/** A refusal: its message, the areas, and tables that would pass. */
export function refusalView(state, refusal, caption, actions, isMain = false) {
  const offers = refusal.nearest || [];
  return el(
    "div",
    { class: "notice bad refusal", role: isMain ? null : "group", "aria-label": isMain ? null : refusalTitle(refusal) },
    isMain ? null : el("strong", {}, refusalTitle(refusal)),
    el("p", {}, caption),
    refusal.areas_count
      ? el(
          "details",
          {},
          el("summary", {}, t("refused.areas", { n: refusal.areas_count })),
          areaList(refusal.areas, refusal.areas_count),
        )
      : null,
    offers.length
      ? el("p", {}, t("refused.offers"))
      : isMain
        ? el("p", { class: "quiet" }, t("refused.nothing"))
        : null,
    offers.length > 0 &&
      el(
        "ul",
        { class: "offers" },
        offers.map((offer, k) => el("li", {}, offerButton(state, offer, k, actions, isMain))),
      ),
  );
}

function offerButton(state, offer, k, actions, isMain) {
  const { catalogue } = state.world;
  const caption = axesText(catalogue, offer.query).join(" × ") || title(catalogue, offer.query);
  return button(
    [
      el("strong", { lang: labelLang() }, caption),
      el("small", {}, offer.words),
      offer.price ? el("small", { class: "price" }, t("budget.price", { price: decimal(offer.price) })) : null,
    ].filter(Boolean),
    () => actions.takeOffer(offer.query),
    { class: "offer", data: { key: `offer-${isMain ? "main" : "side"}-${k}` } },
  );
}

function runButton(state, found, actions) {
  const isJob = Boolean(found?.needs_job);
  const busy = state.answer.status === "loading";
  if (isJob) return jobForm(state, actions);
  const price = found?.budget?.price;
  const caption = price ? t("run.price", { price: decimal(price) }) : t("run");
  const isUnpriced = state.world.catalogue.charged && state.preview.status === "loading";
  // while it is busy the button keeps the focus, and a second press does nothing
  return button(busy ? t("loading") : caption, () => busy || actions.run(), {
    class: "primary run",
    disabled: !axesOf(state).length || isShort(found) || isUnpriced,
    "aria-disabled": busy ? "true" : null,
    data: { key: "run" },
  });
}

function jobForm(state, actions) {
  const list = choice(
    t("job.format"),
    FORMATS.map((one, k) => [one, k ? t(`format.${one}`) : t("job.page")]),
    FORMATS[0],
    () => {},
    { data: { key: "job-format" } },
  );
  return el(
    "div",
    { class: "row" },
    list,
    button(t("job.make"), () => actions.submit(list.querySelector("select").value), {
      class: "primary run",
      disabled: state.submitting,
      data: { key: "run" },
    }),
  );
}
