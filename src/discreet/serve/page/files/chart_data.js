// What a chart shows of a table: one level of each variable, who is on the axis, who has the colours, who gets a panel,
// and the kind of chart that suits them. Pure functions.

import { codeText } from "./answer.js";
import { KINDS } from "./kinds.js";
import { t } from "./language.js";
import { spansOf } from "./spans.js";
import { COMPARED } from "./measures.js";
import { breakdownsOf } from "./question.js";

const MOST_COLOURS = 8; // series with colours that differ clearly
const MOST_PANELS = 24;
const MOST_POINTS = 4000;
const COMFORTABLE = 120; // categories of an axis that need no coarser level

/** The levels that a variable has in the table: depth -> its places. Categories that end above a level belong to it. */
export function levelsOf(axis) {
  const hasChild = new Set(axis.parents);
  const parts = axis.codes.map((_, place) => place).filter((place) => place !== axis.total);
  if (!parts.length) return new Map([[0, [axis.total]]]);
  const depths = [...new Set(parts.map((place) => axis.depths[place]))].sort((a, b) => a - b);
  return new Map(
    depths.map((depth) => [
      depth,
      parts.filter((place) => axis.depths[place] === depth || (axis.depths[place] < depth && !hasChild.has(place))),
    ]),
  );
}

/** The name of a level: what the office calls it, or its number. Of breakdowns that end at one level, it is the one with
 * as many categories. */
export function levelName(catalogue, axis, depth, places) {
  const ending = breakdownsOf(catalogue, axis.variable).filter((one) => one.depth === depth && one.name.includes("."));
  const named = ending.find((one) => one.finest === places.length) ?? (ending.length === 1 ? ending[0] : null);
  const known = named && (named.name.endsWith(`.${named.label}`) ? "" : named.label);
  const count = t(axis.isPlace ? "areas" : "categories", { n: places.length });
  return `${known || t("chart.depth", { n: depth })} · ${count}`;
}

/** The level that is shown: the chosen one, else the finest that is comfortable to read. */
function levelShown(axis, chosen) {
  const levels = levelsOf(axis);
  if (levels.has(chosen)) return chosen;
  const depths = [...levels.keys()];
  return depths.findLast((depth) => levels.get(depth).length <= COMFORTABLE) ?? depths[0];
}

/** Whether categories are steps of a quantity, such as ages or years: most begin with a number, and the numbers grow. */
function isOrdered(axis, places) {
  if (places.length < 4 || axis.isPlace) return false;
  const numbers = places.map((place) => Number(/^\d+/.exec(axis.labels[place])?.[0] ?? NaN));
  const known = numbers.filter((one) => !Number.isNaN(one));
  if (known.length < 0.7 * places.length) return false;
  const rising = known.slice(1).filter((one, k) => one >= known[k]).length;
  return rising >= 0.85 * (known.length - 1);
}

/** The variables of a chart with their roles; those without a role are shown at one code, which is chosen. */
export function rolesOf(state, view) {
  const axes = [...view.down.axes, ...view.across.axes];
  const dims = axes.map((axis) => {
    const depth = levelShown(axis, state.levels[axis.variable]);
    const places = levelsOf(axis).get(depth);
    return { axis, depth, places, isOrdered: isOrdered(axis, places) };
  });
  const wide = dims.filter((dim) => dim.places.length > 1);
  const rank = (dim) => (dim.isOrdered ? 1e6 : 0) + dim.places.length;
  const main = wide.toSorted((a, b) => rank(b) - rank(a))[0] ?? dims[0];
  const rest = wide.filter((dim) => dim !== main).sort((a, b) => a.places.length - b.places.length);
  const series = rest.find((dim) => dim.places.length <= MOST_COLOURS) ?? null;
  const panel = rest.find((dim) => dim !== series && dim.places.length <= MOST_PANELS) ?? null;
  const fixed = dims.filter((dim) => ![main, series, panel].includes(dim));
  return { main, series, panel, fixed };
}

const isSexes = ({ axis, places }) =>
  places.length === 2 && /^(sex|gender|geschlecht)/i.test(`${axis.variable}`);

/** The spans of years of age groups that are not equally wide; null where they are, or for other categories. */
export const agesOf = ({ axis, places, isOrdered: isRow }) =>
  isRow && /^(age|alter)/i.test(axis.variable) ? spansOf(places.map((place) => axis.labels[place])) : null;

/** The kinds that suit the variables and what is shown of them, the best first. Only parts of one whole are stacked, and
 * a pyramid needs numbers that are not below zero. */
export function kindsFor({ main, series, panel }, { kind: measure }) {
  const two = series?.places.length === 2 && !COMPARED.includes(measure);
  const best =
    main.isOrdered && series && two && isSexes(series) && !panel
      ? "pyramid"
      : panel
        ? "multiples"
        : main.isOrdered
          ? "lines"
          : main.places.length > 30
            ? "dots"
            : "bars";
  const can = {
    bars: true,
    dots: true,
    lines: main.places.length > 1,
    stacked: Boolean(series) && ["count", "total"].includes(measure),
    share: Boolean(series) && measure === "count",
    pyramid: two && main.places.length > 2,
    multiples: Boolean(series || panel),
  };
  return [best, ...KINDS.filter((kind) => can[kind] && kind !== best)];
}

/** The code at which a variable without a role is shown: the chosen one, the total, or the first. */
export const pickOf = (axis, picks) => {
  const chosen = axis.codes.indexOf(picks[axis.variable]);
  return chosen >= 0 ? chosen : Math.max(0, axis.total);
};

/** The cells of a chart: {index, main, series, panel} with texts; cut where there would be too many to draw. */
export function cellsOf(state, view, roles) {
  const { main, series, panel, fixed } = roles;
  const offset = fixed.reduce((sum, { axis }) => sum + pickOf(axis, state.picks) * axis.stride, 0);
  const text = (dim, place) => codeText(dim.axis, place, state.texts, t("total"));
  const names = (dim) => unique(dim.places.map((place) => text(dim, place)));
  const none = { axis: { stride: 0 }, places: [0] };
  const [mains, seriesNames, panels] = [main, series, panel].map((dim) => (dim ? names(dim) : [""]));
  const cells = [];
  (panel ?? none).places.forEach((p, i) =>
    (series ?? none).places.forEach((s, j) =>
      main.places.forEach((m, k) => {
        const axes = [[main, m], [series ?? none, s], [panel ?? none, p]];
        const index = axes.reduce((sum, [dim, place]) => sum + place * dim.axis.stride, offset);
        cells.push({ index, main: mains[k], series: seriesNames[j], panel: panels[i] });
      }),
    ),
  );
  return { cells: cells.slice(0, MOST_POINTS), isCut: cells.length > MOST_POINTS, mains, seriesNames, panels };
}

/** Texts of which none occurs twice, since a chart knows categories by their texts. */
function unique(texts) {
  const seen = new Map();
  return texts.map((one) => {
    const times = (seen.get(one) ?? 0) + 1;
    seen.set(one, times);
    return times > 1 ? `${one} (${times})` : one;
  });
}
