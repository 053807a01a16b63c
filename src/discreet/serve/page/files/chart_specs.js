// Vega-Lite specifications: from the rows of a chart ({main, series, panel, amount, low, high, value, range}) to a
// drawing. Colours and texts come from outside; nothing here looks at the page.

const LABEL = 260; // pixels of the longest label of a category
const LABEL_OF_MANY = 150; // the same beside small multiples

/** The specification of a kind of chart. */
export function specOf(kind, chart) {
  const made = { bars, dots, lines, stacked, share, pyramid, multiples }[kind](chart);
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    data: { values: chart.rows },
    ...made,
    config: configOf(chart.look),
  };
}

const configOf = ({ ink, quiet, line, font, colours }) => ({
  aria: false,
  background: null,
  font,
  padding: 4,
  view: { stroke: null },
  range: { category: colours },
  mark: { aria: false },
  axis: {
    aria: false,
    labelColor: ink,
    titleColor: quiet,
    titleFontWeight: 600,
    labelFontSize: 12,
    titleFontSize: 12,
    gridColor: line,
    domainColor: line,
    tickColor: line,
    labelLimit: LABEL,
  },
  legend: { aria: false, labelColor: ink, titleColor: quiet, labelFontSize: 12, titleFontSize: 12, symbolLimit: 40 },
  header: { labelColor: ink, titleColor: quiet, labelFontSize: 12, labelLimit: 240 },
  title: { color: ink, fontSize: 15, anchor: "start" },
  text: { color: ink },
});

const tooltip = ({ names }) => [
  { field: "main", type: "nominal", title: names.main },
  ...(names.series ? [{ field: "series", type: "nominal", title: names.series }] : []),
  ...(names.panel ? [{ field: "panel", type: "nominal", title: names.panel }] : []),
  { field: "value", type: "nominal", title: names.amount },
  { field: "range", type: "nominal", title: names.range },
];

const amount = ({ names, format }, more = {}, orient = null) => ({
  field: "amount",
  type: "quantitative",
  title: names.amount,
  axis: { format, tickCount: 6, ...(orient ? { orient } : {}) },
  ...more,
});

const LEGEND = 96; // pixels of the legend and the axis, beside the lines of a chart

/** The height of a line, so that all are in sight where they are readable then; else the axis is at the top. */
function lineOf(chart, lines, least, most) {
  const step = Math.max(least, Math.min(most, Math.floor((chart.height - LEGEND) / lines)));
  return { step, orient: step * lines + LEGEND > chart.height ? "top" : "bottom" };
}
/** The name of a vertical axis above its labels, not across them. */
const above = { titleAngle: 0, titleAlign: "right", titleBaseline: "bottom", titleX: -8, titleY: -6 };
const categories = (chart, more = {}) => ({
  field: "main",
  type: "nominal",
  sort: chart.mains,
  title: chart.names.main,
  ...more,
});
const colour = (chart) =>
  chart.names.series
    ? {
        color: {
          field: "series",
          type: "nominal",
          sort: chart.series,
          title: chart.names.series,
          scale: { domain: chart.series },
          legend: {
            orient: "top",
            columns: Math.max(1, Math.floor((chart.width - 60) / (chart.seriesWidth + 34))),
            labelLimit: chart.width - 90,
          },
        },
      }
    : { color: { value: chart.look.colours[0] } };

/** Layers of which a click on the legend shows only one series; another click shows all. */
function filtering(chart, layers) {
  if (!chart.names.series) return layers;
  const select = { type: "point", fields: ["series"], toggle: "true" };
  const filter = { filter: { param: "picked" } };
  return layers.map((layer, k) => ({
    ...layer,
    ...(k ? {} : { params: [{ name: "picked", select, bind: "legend" }] }),
    transform: [...(layer.transform ?? []), filter],
  }));
}

/** The drawing without the room of the labels at its side. */
const beside = (chart) => ({ width: Math.max(120, chart.width - Math.min(LABEL, chart.labelWidth) - 60) });

/** Whiskers of the noise along one direction. */
const whisker = (chart, along, encoding) =>
  chart.hasWhiskers
    ? [
        {
          mark: { type: "rule", color: chart.look.ink, strokeWidth: 1.4, tooltip: null },
          transform: [{ filter: "isValid(datum.low)" }],
          encoding: {
            ...encoding,
            [along]: { field: "low", type: "quantitative" },
            [`${along}2`]: { field: "high" },
          },
        },
      ]
    : [];

function bars(chart) {
  const many = chart.names.series ? chart.series.length : 1;
  const encoding = {
    y: categories(chart, { axis: above }),
    ...(many > 1 ? { yOffset: { field: "series", type: "nominal", sort: chart.series } } : {}),
  };
  const { step, orient } = lineOf(chart, chart.mains.length * many, many > 4 ? 9 : many > 1 ? 12 : 13, 22);
  return {
    ...beside(chart),
    height: many > 1 ? { step, for: "offset" } : { step },
    layer: filtering(chart, [
      {
        mark: { type: "bar", cornerRadiusEnd: 2 },
        encoding: { ...encoding, x: amount(chart, { stack: null }, orient), ...colour(chart), tooltip: tooltip(chart) },
      },
      ...whisker(chart, "x", encoding),
    ]),
  };
}

function dots(chart) {
  const encoding = { y: categories(chart, { axis: { ...above, grid: true } }) };
  const { step, orient } = lineOf(chart, chart.mains.length, 13, 20);
  return {
    ...beside(chart),
    height: { step },
    layer: filtering(chart, [
      {
        mark: { type: "point", filled: true, size: 60, opacity: 0.95 },
        encoding: { ...encoding, x: amount(chart, { scale: { zero: false } }, orient), ...colour(chart), tooltip: tooltip(chart) },
      },
      ...whisker(chart, "x", { ...encoding, detail: { field: "series", type: "nominal" } }),
    ]),
  };
}

function lines(chart) {
  const x = categories(chart, {
    axis: { labelOverlap: "greedy", labelAngle: chart.mains.length > 8 ? -40 : 0, labelLimit: 130 },
    scale: { padding: 0.2 },
  });
  const y = amount(chart, { scale: { zero: true } });
  return {
    width: Math.max(160, chart.width - 76),
    height: Math.min(520, Math.max(220, chart.height - LEGEND - 40)),
    layer: filtering(chart, [
      {
        mark: { type: "line", strokeWidth: 2.2, point: chart.mains.length <= 60 ? { size: 34 } : false },
        encoding: { x, y, ...colour(chart), tooltip: tooltip(chart) },
      },
      ...whisker(chart, "y", { x, detail: { field: "series", type: "nominal" } }),
      {
        // wide targets for the pointer
        mark: { type: "point", size: 220, opacity: 0 },
        encoding: { x, y, ...colour(chart), tooltip: tooltip(chart) },
      },
    ]),
  };
}

function stackedBars(chart, stack, title) {
  const format = stack === "normalize" ? "%" : chart.format;
  const { step, orient } = lineOf(chart, chart.mains.length, 13, 22);
  return {
    ...beside(chart),
    height: { step },
    layer: filtering(chart, [
      {
        mark: { type: "bar" },
        encoding: {
          y: categories(chart, { axis: above }),
          x: { ...amount(chart), stack, axis: { format, tickCount: 6, orient }, ...(title ? { title } : {}) },
          order: { field: "place", type: "quantitative" },
          ...colour(chart),
          tooltip: tooltip(chart),
        },
      },
    ]),
  };
}

const stacked = (chart) => stackedBars(chart, "zero");
const share = (chart) => stackedBars(chart, "normalize", chart.names.share);

/** Age groups that are not equally wide, as spans of years with numbers per year of age. */
function perYear(chart) {
  const spans = new Map(chart.ages.map((span, k) => [chart.mains[k], span]));
  const rows = chart.rows.map((row) => {
    const [from, until] = spans.get(row.main);
    const each = (number) => (number === undefined ? undefined : number / (until - from));
    return { ...row, from, until, middle: (from + until) / 2, amount: each(row.amount), low: each(row.low), high: each(row.high) };
  });
  const middles = chart.ages.map(([from, until]) => (from + until) / 2);
  const labels = Object.fromEntries(middles.map((middle, k) => [middle, chart.mains[k]]));
  const axis = { ...above, grid: false, ticks: false, values: middles, labelExpr: `${JSON.stringify(labels)}[datum.value]`, labelOverlap: "greedy" };
  const scale = { domain: [chart.ages[0][0], chart.ages.at(-1)[1]], nice: false, zero: false };
  const y = { field: "from", type: "quantitative", title: chart.names.main, scale, axis };
  return {
    rows,
    bar: { y, y2: { field: "until" }, x2: { datum: 0 } },
    rule: { y: { ...y, field: "middle" } },
    mark: { type: "rect", stroke: chart.look.paper, strokeWidth: 0.8 },
    height: chart.height - LEGEND,
    title: chart.names.yearly,
  };
}

/** All age groups equally high. */
function perGroup(chart) {
  const { step } = lineOf(chart, chart.mains.length, 9, 24);
  const y = categories(chart, { sort: [...chart.mains].reverse(), axis: { ...above, labelOverlap: true } });
  return { rows: chart.rows, bar: { y }, rule: { y }, mark: { type: "bar" }, height: { step }, title: chart.names.amount };
}

function pyramid(chart) {
  const sided = { calculate: `datum.series === ${JSON.stringify(chart.series[0])} ? -1 : 1`, as: "side" };
  const from = (field, as) => ({ calculate: `datum.side * datum.${field}`, as });
  const label = `format(abs(datum.value), '${chart.format === ",d" ? "," : chart.format === "~%" ? ".1~%" : chart.format}')`;
  const groups = chart.ages ? perYear(chart) : perGroup(chart);
  const tickCount = Math.max(3, Math.min(8, Math.floor(chart.width / 100)));
  const x = { field: "sided", type: "quantitative", title: groups.title, axis: { labelExpr: label, labelFlush: false, tickCount } };
  const rule = { ...groups.rule, x: { field: "sidedLow", type: "quantitative" }, x2: { field: "sidedHigh" } };
  return {
    ...beside(chart),
    data: { values: groups.rows },
    height: groups.height,
    transform: [sided, from("amount", "sided"), from("low", "sidedLow"), from("high", "sidedHigh")],
    layer: filtering(chart, [
      { mark: groups.mark, encoding: { ...groups.bar, x, ...colour(chart), tooltip: tooltip(chart) } },
      ...(chart.hasWhiskers
        ? [
            {
              mark: { type: "rule", color: chart.look.ink, strokeWidth: 1.4, tooltip: null },
              transform: [{ filter: "isValid(datum.low)" }],
              encoding: rule,
            },
          ]
        : []),
    ]),
  };
}

/** A panel for each category of the panel's variable, or of the series where there is no other. */
function multiples(chart) {
  const field = chart.names.panel ? "panel" : "series";
  const order = chart.names.panel ? chart.panels : chart.series;
  const columns = Math.max(1, Math.min(order.length, Math.floor(chart.width / (chart.isOrdered ? 250 : 330))));
  const room = chart.isOrdered ? 70 : 70 + Math.min(LABEL_OF_MANY, chart.labelWidth); // of the axes at the side
  const width = Math.floor((chart.width - room) / columns) - 24;
  const one = chart.names.panel ? chart : { ...chart, names: { ...chart.names, series: "" } };
  const x = categories(one, {
    axis: { labelOverlap: "greedy", labelAngle: -40, labelLimit: 90, ...(one.mains.length > 8 ? { labelFontSize: 10 } : {}) },
  });
  const lines = {
    y: categories(one, { axis: { labelLimit: LABEL_OF_MANY, labelFontSize: 10.5 } }),
    ...(one.names.series ? { yOffset: { field: "series", type: "nominal", sort: one.series } } : {}),
  };
  const inner = chart.isOrdered
    ? {
        width: Math.max(90, width),
        height: 150,
        layer: filtering(one, [
          {
            mark: { type: "line", strokeWidth: 2, point: { size: 16 } },
            encoding: { x, y: amount(one, { axis: { format: one.format, tickCount: 4 } }), ...colour(one), tooltip: tooltip(chart) },
          },
          ...whisker(one, "y", { x, detail: { field: "series", type: "nominal" } }),
        ]),
      }
    : {
        width: Math.max(90, width),
        height: { step: 14 },
        layer: filtering(one, [
          {
            mark: { type: "bar" },
            encoding: {
              ...lines,
              x: amount(one, { stack: null, axis: { format: one.format, tickCount: 3 } }),
              ...colour(one),
              tooltip: tooltip(chart),
            },
          },
          ...whisker(one, "x", lines),
        ]),
      };
  return {
    facet: { field, type: "nominal", sort: order, title: null, header: { labelFontWeight: 600, labelLimit: Math.max(90, width) } },
    columns,
    spacing: 18,
    spec: inner,
  };
}

