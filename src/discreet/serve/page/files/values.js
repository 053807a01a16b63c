// What the numbers of the table are, as a reader chooses it: counts, shares, comparisons; the largest only, without zeros.

import { codeText } from "./answer.js";
import { choice, el } from "./dom.js";
import { t } from "./language.js";
import { COMPARED, VALUES, baseOf, possible } from "./measures.js";
import { variableName } from "./names.js";

const MOST_CODES = 300; // categories of a variable that are offered to compare with
const TOPS = [0, 5, 10, 20, 50];

/** The name of a measure with what it is compared with: "difference from Male". */
export function measureName(state, measure) {
  if (!measure.base) return measure.caption;
  const [axis, place] = measure.base;
  return t(`values.${measure.kind}.of`, { base: codeText(axis, place, state.texts, t("total")) });
}

/** The lists that choose the numbers. */
export function valuesView(state, actions, layout, view) {
  const can = possible(state.answer.table, layout.rows, layout.columns);
  const offered = VALUES.filter((one) => can[one]);
  const chosen = can[state.values] ? state.values : "count";
  return [
    choice(
      t("values"),
      offered.map((one) => [one, t(`values.${one}`)]),
      chosen,
      (values) => actions.show({ values, base: null, sort: null }),
      { data: { key: "values" } },
    ),
    COMPARED.includes(chosen) ? baseList(state, actions, view, chosen) : null,
  ];
}

/** With which category numbers are compared, by variable. */
function baseList(state, actions, view, kind) {
  const { table } = state.answer;
  const [axis, place] = baseOf(table, view.down, view.across, kind, state.base);
  const now = JSON.stringify([axis.variable, axis.codes[place]]);
  const groups = table.axes
    .filter((one) => one.codes.length > 1 && one.codes.length <= MOST_CODES)
    .map((one) =>
      el(
        "optgroup",
        { label: variableName(state.world.catalogue, one.variable) },
        one.codes.map((code, k) => {
          const value = JSON.stringify([one.variable, code]);
          return el("option", { value, selected: value === now }, codeText(one, k, state.texts, t("total")));
        }),
      ),
    );
  const list = el(
    "select",
    { data: { key: "compared" }, on: { change: (event) => actions.show({ base: JSON.parse(event.target.value), sort: null }) } },
    groups,
  );
  list.value = now;
  return el("label", { class: "field" }, el("span", {}, t("values.base")), list);
}

/** What is less often chosen: totals, counts beside shares, only the largest rows, no zeros, how close the rows are. */
export function linesView(state, actions) {
  const check = (name, caption, isOn, change) =>
    el(
      "label",
      { class: "check" },
      el("input", { type: "checkbox", checked: isOn, data: { key: name }, on: { change: (event) => actions.show(change(event.target.checked)) } }),
      el("span", {}, caption),
    );
  const totals = check("totals", t("totals"), state.totals, (isOn) => ({ totals: isOn, sort: null }));
  if (state.view !== "table") return [totals];
  return [
    totals,
    state.values === "count" ? null : check("counts", t("counts"), state.counts, (counts) => ({ counts, sort: null })),
    check("zeros", t("zeros"), !state.zeros, (isOn) => ({ zeros: !isOn })),
    check("singles", t("singles"), state.singles, (singles) => ({ singles, sort: null })),
    choice(
      t("top"),
      TOPS.map((n) => [String(n), n ? t("top.some", { n }) : t("top.all")]),
      String(state.top),
      (n) => actions.show({ top: Number(n) }),
      { data: { key: "top" } },
    ),
    choice(
      t("density"),
      ["normal", "compact"].map((one) => [one, t(`density.${one}`)]),
      state.density,
      (density) => actions.show({ density }),
      { data: { key: "density" } },
    ),
  ];
}
