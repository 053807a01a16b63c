// The chart of a table: which kind, at which level, with or without the noise; drawn by Vega.

import { choice, el, replace } from "./dom.js";
import { codeText } from "./answer.js";
import { agesOf, cellsOf, kindsFor, levelName, levelsOf, pickOf, rolesOf } from "./chart_data.js";
import { specOf } from "./chart_specs.js";
import { number, t } from "./language.js";
import { title, unitName, variableName } from "./names.js";
import { measureName } from "./values.js";
import { fetchRanges, levelOf, rangeOf } from "./noise.js";
import { draw } from "./vega.js";

const NARROW = 560; // pixels
const ABOVE = 340; // pixels of the page above a chart and below it
const COLOURS = 8;
const WITHOUT_NOISE = ["stacked", "share"]; // their parts do not begin at zero
let shown = null; // the chart on the screen: {spec, chart, view}

/** The chart with the controls that belong to it. */
export function chartView(state, view, actions) {
  const roles = rolesOf(state, view);
  const kinds = kindsFor(roles, view.measure);
  const kind = kinds.includes(state.chart) ? state.chart : kinds[0];
  const place = el("div", { class: "drawing", data: { kind } });
  const figure = el("figure", { class: "chart" }, place, el("figcaption", { class: "quiet" }, captionOf(kind, roles)));
  const hasNoise = state.whiskers && !WITHOUT_NOISE.includes(kind);
  queueMicrotask(() => drawInto(place, figure, state, view, roles, kind, hasNoise));
  return el("div", {}, controls(state, view, roles, kinds, kind, actions), figure);
}

const captionOf = (kind, { main }) =>
  [
    t("chart.levels"),
    kind === "share" ? t("chart.shares") : "",
    agesOf(main) ? t(kind === "pyramid" ? "chart.years" : "chart.uneven") : "",
  ]
    .filter(Boolean)
    .join(" ");

function controls(state, view, roles, kinds, kind, actions) {
  const { catalogue } = state.world;
  const dims = [roles.main, roles.series, roles.panel].filter(Boolean);
  const levels = dims.map(({ axis, depth }) => {
    const every = [...levelsOf(axis)];
    if (every.length < 2) return null;
    return choice(
      t("chart.level", { name: variableName(catalogue, axis.variable) }),
      every.map(([one, places]) => [String(one), levelName(catalogue, axis, one, places)]),
      String(depth),
      (chosen) => actions.show({ levels: { ...state.levels, [axis.variable]: Number(chosen) } }),
      { data: { key: `level-${axis.variable}` } },
    );
  });
  const picks = roles.fixed
    .filter(({ axis }) => axis.codes.length > 1)
    .map(({ axis }) =>
      choice(
        variableName(catalogue, axis.variable),
        axis.codes.map((code, k) => [code, codeText(axis, k, state.texts, t("total"))]),
        axis.codes[pickOf(axis, state.picks)],
        (code) => actions.show({ picks: { ...state.picks, [axis.variable]: code } }),
        { data: { key: `pick-${axis.variable}` } },
      ),
    );
  const order = ["bars", "dots", "lines", "stacked", "share", "pyramid", "multiples"].filter((one) => kinds.includes(one));
  return el(
    "div",
    { class: "row picks" },
    choice(
      t("chart.kind"),
      order.map((one) => [one, t(`chart.${one}`)]),
      kind,
      (chosen) => actions.show({ chart: chosen }),
      { data: { key: "chart-kind" } },
    ),
    levels.filter(Boolean),
    picks,
    WITHOUT_NOISE.includes(kind)
      ? null
      : el(
          "label",
          { class: "check" },
          el("input", {
            type: "checkbox",
            checked: state.whiskers,
            data: { key: "whiskers" },
            on: { change: (event) => actions.show({ whiskers: event.target.checked }) },
          }),
          el("span", {}, t("chart.whiskers")),
        ),
  );
}

async function drawInto(place, figure, state, view, roles, kind, hasNoise) {
  const { cells, isCut, mains, seriesNames, panels } = cellsOf(state, view, roles);
  const { answer } = state;
  try {
    if (hasNoise) await fetchRanges(answer, cells.map((cell) => cell.index), view.measure).catch(() => null);
    if (!place.isConnected) return;
    const rows = cells.map((cell, k) => rowOf(view, cell, k));
    const chart = {
      rows: rows.filter((row) => row.amount !== null),
      mains,
      series: seriesNames,
      panels,
      isOrdered: roles.main.isOrdered,
      hasWhiskers: hasNoise && rows.some((row) => row.low !== undefined),
      names: namesOf(state, view, roles),
      format: view.measure.vega,
      look: lookOf(),
      ages: agesOf(roles.main),
      isNarrow: innerWidth < NARROW,
      height: Math.max(260, innerHeight - ABOVE),
      width: Math.max(240, place.clientWidth - 18),
      labelWidth: widest(mains),
      seriesWidth: widest(seriesNames),
    };
    const spec = specOf(kind, chart);
    const made = await draw(place, spec);
    if (!place.isConnected) {
      made.finalize();
      return;
    }
    shown = { spec, chart, answer, cells, table: view };
    // one description instead of each mark; the region scrolls by keys, and all numbers are in the table
    place.querySelector("svg").setAttribute("aria-hidden", "true");
    place.setAttribute("role", "group");
    place.removeAttribute("aria-roledescription");
    place.setAttribute("aria-label", aboutOf(chart, kind));
    place.tabIndex = 0;
    place.dataset.drawn = kind;
    const withheld = rows.length - chart.rows.length;
    const more = [isCut ? t("chart.cut") : "", withheld ? t("chart.withheld", { n: withheld }) : ""];
    figure.querySelector("figcaption").append(" ", more.filter(Boolean).join(" "));
  } catch {
    replace(place, el("p", { class: "notice bad", role: "alert" }, t("chart.failed")));
  }
}

/** A cell as a row of the chart's data. */
function rowOf(view, cell, place) {
  const { table } = view;
  const amount = view.amountAt(cell.index);
  const row = { main: cell.main, series: cell.series, panel: cell.panel, place, amount };
  if (amount === null) return row;
  const { measure } = view;
  const count = number(table.values[cell.index]);
  const value = measure.kind === "count" ? count : `${measure.text(amount)} (${count})`;
  const range = rangeOf(table, cell.index, measure);
  if (!range || range.low === null || range.high === null) return { ...row, value, range: "–" };
  const { low, high } = range;
  return { ...row, value, range: t("chart.range", { low: measure.text(low), high: measure.text(high) }), low, high };
}

function namesOf(state, view, { main, series, panel }) {
  const { catalogue } = state.world;
  const name = (dim) => (dim ? variableName(catalogue, dim.axis.variable) : "");
  const unit = unitName(state.answer.query.unit, catalogue);
  const amount = view.measure.kind === "count" ? t("chart.number", { unit }) : `${unit}, ${measureName(state, view.measure)}`;
  return {
    main: name(main),
    series: name(series),
    panel: name(panel),
    amount,
    share: `${unit}, %`,
    yearly: t("chart.yearly", { amount }),
    range: t("chart.true", { level: levelOf(state.answer.table) }),
  };
}

const aboutOf = (chart, kind) =>
  t("chart.about", {
    kind: t(`chart.${kind}`),
    names: [chart.names.main, chart.names.series, chart.names.panel].filter(Boolean).join(" × "),
    n: chart.rows.length,
  });

/** The width of the longest of some texts, as a chart draws them. */
function widest(texts) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return Math.max(...texts.map((text) => pen.measureText(text).width));
}

/** The colours of the page as they are now, light or dark. */
function lookOf() {
  const probe = el("span", { hidden: true });
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const look = {
    ink: colour("ink"),
    quiet: colour("quiet"),
    line: colour("line"),
    paper: colour("paper"),
    font: getComputedStyle(document.body).fontFamily,
    colours: Array.from({ length: COLOURS }, (_, k) => colour(`series-${k}`)),
  };
  probe.remove();
  return look;
}

/** The chart on the screen as a file with its title, as SVG or PNG. */
export async function chartPicture(state, kind) {
  if (!shown) return null;
  const place = el("div", { class: "unseen" });
  document.body.append(place);
  try {
    const heading = title(state.world.catalogue, shown.answer.query);
    const spec = {
      ...shown.spec,
      title: { text: heading, subtitle: state.world.catalogue.title },
      config: { ...shown.spec.config, background: shown.chart.look.paper, padding: 16 },
    };
    const made = await draw(place, spec);
    const blob =
      kind === "svg"
        ? new Blob([await made.view.toSVG()], { type: "image/svg+xml" })
        : await new Promise((done) => made.view.toCanvas(2).then((canvas) => canvas.toBlob(done, "image/png")));
    made.finalize();
    return blob;
  } finally {
    place.remove();
  }
}

/** The data of the chart on the screen, as CSV with the ranges of the noise. */
export async function chartData() {
  if (!shown) return null;
  await fetchRanges(shown.answer, shown.cells.map((cell) => cell.index), shown.table.measure);
  const rows = shown.cells.map((cell, k) => rowOf(shown.table, cell, k));
  const { names } = shown.chart;
  const columns = [
    ["main", names.main],
    ["series", names.series],
    ["panel", names.panel],
    ["amount", names.amount],
    ["low", "low"],
    ["high", "high"],
  ].filter(([, name]) => name);
  const quoted = (value) => {
    const text = typeof value === "string" && /^\s*[=@+-]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const lines = [columns.map(([, name]) => name), ...rows.map((row) => columns.map(([key]) => row[key]))];
  return new Blob([`${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`], { type: "text/csv" });
}
