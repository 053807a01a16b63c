// A small population pyramid of a table of ages and two sexes, drawn without the chart library, which is large.

import { el, svg } from "./dom.js";
import { number, t } from "./language.js";

const LINE = 11; // pixels of an age group
const WIDE = 150; // pixels of the longest bar
const TEXT = 118; // pixels for the labels between the two sides

/** The finest level of the ages: what a pyramid shows. */
function groups(age) {
  const inner = new Set(age.parents);
  return age.codes.map((_, k) => k).filter((k) => k !== age.total && !inner.has(k));
}

/** The pyramid, oldest first; its values are also in its description and in the table that it is drawn from. */
export function pyramidView(table) {
  const [age, sex] = table.axes;
  const [left, right] = sex.codes.map((_, k) => k).filter((k) => k !== sex.total);
  const lines = groups(age).reverse();
  const value = (k, side) => table.values[k * age.stride + side * sex.stride] ?? 0;
  const most = Math.max(1, ...lines.flatMap((k) => [value(k, left), value(k, right)]));
  const length = (k, side) => (WIDE * Math.max(0, value(k, side))) / most;
  const height = lines.length * LINE;
  const row = (k, at) => {
    const y = at * LINE;
    const words = `${age.labels[k]}: ${sex.labels[left]} ${number(value(k, left))}, ${sex.labels[right]} ${number(value(k, right))}`;
    return svg(
      "g",
      {},
      svg("title", {}, words),
      svg("rect", { class: "side-0", x: (WIDE - length(k, left)).toFixed(1), y: y + 1, width: length(k, left).toFixed(1), height: LINE - 2 }),
      svg("rect", { class: "side-1", x: WIDE + TEXT, y: y + 1, width: length(k, right).toFixed(1), height: LINE - 2 }),
      at % 2 ? null : svg("text", { x: WIDE + TEXT / 2, y: y + LINE - 2, "text-anchor": "middle" }, age.labels[k]),
    );
  };
  const about = t("pyramid.about", { left: sex.labels[left], right: sex.labels[right], n: lines.length, most: number(most) });
  return el(
    "figure",
    { class: "small-pyramid" },
    svg("svg", { viewBox: `0 0 ${2 * WIDE + TEXT} ${height}`, role: "img", "aria-label": about }, lines.map(row)),
    el(
      "figcaption",
      { "aria-hidden": "true" },
      el("span", { class: "side-0" }, sex.labels[left]),
      el("span", { class: "side-1" }, sex.labels[right]),
    ),
  );
}
