// A small population pyramid of a table of ages and two sexes, drawn without the chart library, which is large.

import { el, svg } from "./dom.js";
import { number, t } from "./language.js";
import { spansOf } from "./spans.js";

const LINE = 11; // pixels of an age group; of several widths, on average
const WIDE = 150; // pixels of the longest bar
const TEXT = 118; // pixels for the labels between the two sides

/** The finest level of the ages: what a pyramid shows. */
function groups(age) {
  const inner = new Set(age.parents);
  return age.codes.map((_, k) => k).filter((k) => k !== age.total && !inner.has(k));
}

/** The pyramid, oldest first; its values are also in its description and in the table that it is drawn from. Of groups
 * that are not equally wide it shows persons per year of age. */
export function pyramidView(table) {
  const [age, sex] = table.axes;
  const [left, right] = sex.codes.map((_, k) => k).filter((k) => k !== sex.total);
  const lines = groups(age).reverse();
  const value = (k, side) => table.values[k * age.stride + side * sex.stride] ?? 0;
  const spans = spansOf(lines.map((k) => age.labels[k]).reverse())?.reverse();
  const years = (at) => (spans ? spans[at][1] - spans[at][0] : 1);
  const drawn = (at, side) => Math.max(0, value(lines[at], side)) / years(at);
  const most = Math.max(...lines.flatMap((_, at) => [drawn(at, left), drawn(at, right)])) || 1;
  const length = (at, side) => ((WIDE * drawn(at, side)) / most).toFixed(1);
  const height = lines.length * LINE;
  const year = spans ? height / (spans[0][1] - spans.at(-1)[0]) : LINE;
  const top = (at) => (spans ? (spans[0][1] - spans[at][1]) * year : at * LINE);
  const gap = spans ? 0.4 : 1;
  let written = -LINE; // where the last label is
  const row = (k, at) => {
    const [y, tall] = [top(at), years(at) * year];
    const middle = y + tall / 2;
    const hasLabel = middle - written >= 1.2 * LINE;
    if (hasLabel) written = middle;
    const words = `${age.labels[k]}: ${sex.labels[left]} ${number(value(k, left))}, ${sex.labels[right]} ${number(value(k, right))}`;
    return svg(
      "g",
      {},
      svg("title", {}, words),
      svg("rect", { class: "side-0", x: WIDE - length(at, left), y: y + gap, width: length(at, left), height: tall - 2 * gap }),
      svg("rect", { class: "side-1", x: WIDE + TEXT, y: y + gap, width: length(at, right), height: tall - 2 * gap }),
      hasLabel ? svg("text", { x: WIDE + TEXT / 2, y: middle + 3.5, "text-anchor": "middle" }, age.labels[k]) : null,
    );
  };
  const largest = Math.max(...lines.flatMap((k) => [value(k, left), value(k, right)]));
  const about = t("pyramid.about", { left: sex.labels[left], right: sex.labels[right], n: lines.length, most: number(largest) });
  return el(
    "figure",
    { class: "small-pyramid" },
    svg("svg", { viewBox: `0 0 ${2 * WIDE + TEXT} ${height}`, role: "img", "aria-label": about }, lines.map(row)),
    el(
      "figcaption",
      { "aria-hidden": "true" },
      el("span", { class: "side-0" }, sex.labels[left]),
      spans ? el("small", {}, t("pyramid.years")) : null,
      el("span", { class: "side-1" }, sex.labels[right]),
    ),
  );
}
