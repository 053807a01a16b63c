// A map of the areas in five shades, from the GeoJSON that the office gives; areas that are withheld are hatched.

import * as api from "./api.js";
import { codeText } from "./answer.js";
import { choice, el, replace, svg } from "./dom.js";
import { number, percent, t } from "./language.js";
import { variableName } from "./names.js";

const CLASSES = 5;
const WIDE = 860;
const TALLEST = 640;
const CODES = ["code", "CODE", "id", "ID", "NUTS_ID", "LAU_ID", "GEO", "geo", "gid"];
let shapes = null; // the GeoJSON is large and does not change

/** The map, with a list for each other variable that chooses the code shown. */
export function mapView(state, actions) {
  const { table } = state.answer;
  const place = table.axes.find((axis) => axis.isPlace);
  if (!place) return el("p", { class: "notice" }, t("map.none"));
  const others = table.axes.filter((axis) => axis !== place && axis.codes.length > 1);
  const at = (axis) => Math.max(0, axis.codes.indexOf(state.picks[axis.variable] ?? "_T"));
  const lists = others.map((axis) =>
    choice(
      variableName(state.world.catalogue, axis.variable),
      axis.codes.map((code, k) => [code, codeText(axis, k, state.texts, t("total"))]),
      axis.codes[at(axis)],
      (code) => actions.show({ picks: { ...state.picks, [axis.variable]: code } }),
      { data: { key: `pick-${axis.variable}` } },
    ),
  );
  const offset = others.reduce((sum, axis) => sum + at(axis) * axis.stride, 0);
  const figure = el("figure", { class: "map" }, el("p", { class: "quiet" }, t("loading")));
  shapes ??= api.geometry();
  shapes
    .then((found) => replace(figure, drawn(state, table, place, others, offset, found)))
    .catch(() => {
      shapes = null;
      replace(figure, el("p", { class: "notice bad", role: "alert" }, t("map.failed")));
    });
  return el("div", {}, el("div", { class: "row picks" }, lists), figure);
}

function drawn(state, table, place, others, offset, geometry) {
  const isShare = state.values !== "count" && others.every((axis) => axis.total >= 0);
  const whole = others.reduce((sum, axis) => sum + Math.max(0, axis.total) * axis.stride, 0);
  const known = new Map(
    place.codes.map((code, k) => [code, { k, value: amount(table.values, k * place.stride, offset, whole, isShare) }]),
  );
  const features = (geometry.features || [])
    .map((feature) => ({ feature, found: known.get(codeOf(feature, known)) }))
    .filter((one) => one.found);
  if (!features.length) return [el("p", { class: "notice" }, t("map.nothing"))];
  const finest = finestOnly(features, place);
  const values = finest
    .map((one) => one.found.value)
    .filter((value) => value !== null)
    .sort((a, b) => a - b);
  const breaks = [
    ...new Set(Array.from({ length: CLASSES - 1 }, (_, k) => values[Math.floor(((k + 1) * values.length) / CLASSES)])),
  ];
  const shown = isShare ? percent : number;
  const project = projection(finest.map((one) => one.feature.geometry));
  const readout = el("p", { class: "readout", "aria-hidden": "true" }, t("map.hint"));
  const paths = finest.map(({ feature, found }, k) => {
    const value = found.value === null ? t("withheld") : shown(found.value);
    const caption = `${codeText(place, found.k, state.texts, t("total"))}: ${value}`;
    return svg(
      "path",
      {
        d: path(feature.geometry, project),
        role: "img",
        "aria-label": caption,
        tabindex: k ? "-1" : "0",
        ...(found.value === null
          ? { class: "hatched", fill: "url(#hatch)" }
          : { class: `shade-${shade(found.value, breaks)}` }),
      },
      svg("title", {}, caption),
    );
  });
  const ring = svg("path", { class: "ring", "aria-hidden": "true", d: "" }); // over all neighbours
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${project.width} ${project.height}`,
      role: "group",
      "aria-label": t("map.about", { n: finest.length }),
      on: {
        keydown: (event) => byArrow(event, paths),
        focusin: (event) => read(event, readout, paths, ring),
        focusout: () => ring.setAttribute("d", ""),
        pointerover: (event) => read(event, readout, paths, ring),
        click: (event) => event.target.focus?.(),
      },
    },
    hatching(),
    paths,
    ring,
  );
  const hasWithheld = finest.some((one) => one.found.value === null);
  return [drawing, readout, shadeLegend(values, breaks, shown, hasWithheld)];
}

/** Show the text of the area in focus; the focus comes back to the last one. */
function read(event, readout, paths, ring) {
  const area = event.target.closest("path[role]");
  if (!area) return;
  readout.textContent = area.getAttribute("aria-label");
  if (event.type !== "focusin") return;
  ring.setAttribute("d", area.getAttribute("d"));
  for (const one of paths) one.setAttribute("tabindex", one === area ? "0" : "-1");
}

const DIRECTIONS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** Arrow keys go to the nearest area on that side. */
function byArrow(event, paths) {
  const way = DIRECTIONS[event.key];
  if (!way || !paths.includes(event.target)) return;
  event.preventDefault();
  const middle = (area) => {
    const box = area.getBBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const [x, y] = middle(event.target);
  const costs = paths
    .filter((area) => area !== event.target)
    .map((area) => {
      const [dx, dy] = [middle(area)[0] - x, middle(area)[1] - y];
      const ahead = dx * way[0] + dy * way[1];
      const aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      return { area, isThere: ahead > 0 && 1.5 * ahead > aside, cost: ahead + 2 * aside };
    })
    .filter(({ isThere }) => isThere)
    .sort((a, b) => a.cost - b.cost);
  costs[0]?.area.focus();
}

function amount(values, at, offset, whole, isShare) {
  const value = values[at + offset];
  if (value === null || !isShare) return value;
  return values[at + whole] ? value / values[at + whole] : null;
}

function codeOf(feature, known) {
  const named = [feature.id, ...CODES.map((name) => feature.properties?.[name])].map(String);
  return (
    named.find((code) => known.has(code)) ??
    Object.values(feature.properties || {})
      .map(String)
      .find((code) => known.has(code))
  );
}

/** Regions would cover the districts in them: only the finest areas that have a shape are drawn. */
function finestOnly(features, place) {
  const deepest = Math.max(...features.map((one) => place.depths[one.found.k]));
  return features.filter((one) => place.depths[one.found.k] === deepest);
}

const shade = (value, breaks) => breaks.filter((edge) => value >= edge).length;

function rings(geometry) {
  if (geometry?.type === "Polygon") return geometry.coordinates;
  if (geometry?.type === "MultiPolygon") return geometry.coordinates.flat();
  if (geometry?.type === "GeometryCollection") return geometry.geometries.flatMap(rings);
  return [];
}

/** Degrees are squeezed by the cosine of the middle latitude; metres of a national grid are taken as they are. */
function projection(geometries) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const geometry of geometries)
    for (const ring of rings(geometry))
      for (const [x, y] of ring) {
        box[0] = Math.min(box[0], x);
        box[1] = Math.min(box[1], y);
        box[2] = Math.max(box[2], x);
        box[3] = Math.max(box[3], y);
      }
  const inDegrees =
    Math.abs(box[0]) <= 180 && Math.abs(box[2]) <= 180 && Math.abs(box[1]) <= 90 && Math.abs(box[3]) <= 90;
  const squeeze = inDegrees ? Math.cos(((box[1] + box[3]) * Math.PI) / 360) : 1;
  const scale = Math.min(WIDE / ((box[2] - box[0]) * squeeze || 1), TALLEST / (box[3] - box[1] || 1));
  const point = ([x, y]) => `${((x - box[0]) * squeeze * scale).toFixed(1)} ${((box[3] - y) * scale).toFixed(1)}`;
  return Object.assign(point, {
    width: ((box[2] - box[0]) * squeeze * scale).toFixed(0),
    height: ((box[3] - box[1]) * scale).toFixed(0),
  });
}

const path = (geometry, project) =>
  rings(geometry)
    .map((ring) => `M${ring.map(project).join("L")}Z`)
    .join("");

function hatching() {
  return svg(
    "defs",
    {},
    svg(
      "pattern",
      { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { width: 6, height: 6, class: "hatch-ground" }),
      svg("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch-line" }),
    ),
  );
}

/** Each shade with the least and the largest value that has it. */
function shadeLegend(values, breaks, shown, hasWithheld) {
  const items = Array.from({ length: CLASSES }, (_, k) => values.filter((value) => shade(value, breaks) === k))
    .map((some, k) => ({ some, k }))
    .filter(({ some }) => some.length)
    .map(({ some, k }) => {
      const [least, most] = [shown(some[0]), shown(some.at(-1))];
      const caption = least === most ? least : `${least} – ${most}`;
      return el("li", {}, el("i", { class: `shade-${k}`, "aria-hidden": "true" }), caption);
    });
  if (hasWithheld) items.push(el("li", {}, el("i", { class: "hatched", "aria-hidden": "true" }), t("withheld")));
  return el("ul", { class: "legend" }, items);
}
