// A bar chart of the table as it is laid out: a group of bars for each row, a colour for each column. Drawn here,
// because a chart library that compiles expressions would need a weaker security policy.

import { codeText } from "./answer.js";
import { el, svg } from "./dom.js";
import { number, percent, t } from "./language.js";
import { variableName } from "./names.js";

const MOST_ROWS = 40;
const MOST_SERIES = 6;
const BAR = 15;
const GAP = 12;

/** The chart, and a text on what it leaves out. */
export function chartView(state, view) {
  const lines = picked(view.rowCount, MOST_ROWS, (row) => isWhole(view.down, (k) => view.header(k, row)));
  const series = picked(view.columnCount, MOST_SERIES, (column) =>
    isWhole(view.across, (k) => view.columnHeader(k, column)),
  );
  const left = [
    lines.left && t("chart.rows", { shown: lines.shown.length, all: lines.all }),
    series.left && t("chart.columns", { shown: series.shown.length, all: series.all }),
  ].filter(Boolean);
  const names = series.shown.map((column) => columnWords(state, view, column));
  return el(
    "figure",
    { class: "chart" },
    legend(names),
    picture(state, view, lines.shown, series.shown, names),
    el("figcaption", { class: "quiet" }, [...left, t("chart.table")].join(" ")),
  );
}

/** The first lines that are not totals; where there are only totals, those. */
function picked(count, most, isTotal) {
  const every = Array.from({ length: count }, (_, k) => k);
  const parts = every.filter((k) => !isTotal(k));
  const wanted = parts.length ? parts : every;
  return { shown: wanted.slice(0, most), all: wanted.length, left: wanted.length > most };
}

/** A line is a total where one of its codes is: bars of a whole next to its parts would be read as one of them. */
const isWhole = (side, place) =>
  side.axes.some((axis, k) => axis.total >= 0 && place(k) === axis.total && side.shown[k].length > 1);

const columnWords = (state, view, column) =>
  view.across.axes.map((axis, k) => codeText(axis, view.columnHeader(k, column), state.texts, t("total"))).join(" · ");
const rowWords = (state, view, row) =>
  view.down.axes.map((axis, k) => codeText(axis, view.header(k, row), state.texts, t("total"))).join(" · ");

function legend(names) {
  if (names.length < 2) return null;
  return el(
    "ul",
    { class: "legend" },
    names.map((name, k) => el("li", {}, el("i", { class: `series-${k}`, "aria-hidden": "true" }), name)),
  );
}

function picture(state, view, rows, columns, names) {
  const narrow = window.innerWidth < 600;
  const wide = narrow ? 340 : 860;
  const label = narrow ? 110 : 240;
  const room = wide - label - 70;
  const amount = (row, column) => (view.share ? view.share(row, column) : view.value(row, column));
  const most = Math.max(
    ...rows.flatMap((row) => columns.map((column) => amount(row, column) ?? 0)),
    view.share ? 0.001 : 1,
  );
  const group = columns.length * BAR + GAP;
  const tall = rows.length * group + 34;
  const shown = view.share ? percent : number;
  const about = t("chart.about", {
    rows: view.down.axes.map((axis) => variableName(state.world.catalogue, axis.variable)).join(", "),
    columns: names.join(", "),
  });
  const bars = rows.map((row, k) =>
    bundle(
      rowWords(state, view, row),
      k * group + 26,
      columns.map((column, s) => ({ series: s, name: names[s], amount: amount(row, column) })),
      { label, room, most, shown, narrow },
    ),
  );
  return svg(
    "svg",
    { viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": about, class: "bars" },
    axis(most, label, room, tall, shown),
    bars,
  );
}

function axis(most, label, room, tall, shown) {
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => part * nice(most)).filter((value) => value <= most * 1.001);
  return ticks.map((value) => {
    const x = label + (value / most) * room;
    return svg(
      "g",
      { class: "tick" },
      svg("line", { x1: x, x2: x, y1: 20, y2: tall }),
      svg("text", { x, y: 12, "text-anchor": "middle" }, shown(value)),
    );
  });
}

/** A round number near the largest one. */
function nice(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 5, 8, 10].map((step) => step * power).find((value) => value >= most * 0.8) ?? most;
}

function bundle(caption, top, bars, { label, room, most, shown, narrow }) {
  const longest = narrow ? 15 : 34;
  const short = caption.length > longest ? `${caption.slice(0, longest - 1)}…` : caption;
  const middle = top + (bars.length * BAR) / 2;
  return svg(
    "g",
    {},
    svg(
      "text",
      { x: label - 8, y: middle, "text-anchor": "end", "dominant-baseline": "central" },
      short,
      svg("title", {}, caption),
    ),
    bars.map((bar, k) => {
      const length = ((bar.amount ?? 0) / most) * room;
      const value = bar.amount === null ? t("withheld") : shown(bar.amount);
      return svg(
        "g",
        {},
        svg(
          "rect",
          {
            class: `series-${bar.series}`,
            x: label,
            y: top + k * BAR,
            width: Math.max(0, length),
            height: BAR - 2,
            rx: 2,
          },
          svg("title", {}, [caption, bar.name, value].filter(Boolean).join(": ")),
        ),
        svg(
          "text",
          { class: "amount", x: label + length + 5, y: top + k * BAR + BAR / 2 - 1, "dominant-baseline": "central" },
          bar.amount === null ? "•" : value,
        ),
      );
    }),
  );
}
