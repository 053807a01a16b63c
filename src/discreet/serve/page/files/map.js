// A map of the areas in five shades, from the GeoJSON that the office gives; areas that are withheld are hatched.

import * as api from "./api.js";
import { codeText } from "./answer.js";
import { pickOf } from "./chart_data.js";
import { choice, el, replace, svg } from "./dom.js";
import { t } from "./language.js";
import { METHODS } from "./kinds.js";
import { breaksOf, classOf } from "./map_classes.js";
import { zoomable } from "./map_zoom.js";
import { marking } from "./marks.js";
import { SHARES } from "./measures.js";
import { unitName, variableName } from "./names.js";
import { hideTip, showTip } from "./tip.js";
import { measureName } from "./values.js";

const CLASSES = 5;
const WIDE = 860;
const TALLEST = 640;
const CODES = ["code", "CODE", "id", "ID", "NUTS_ID", "LAU_ID", "GEO", "geo", "gid"];
let shapes = null; // the GeoJSON is large and does not change

/** The map, with a list for each other variable that chooses the code shown, one for the classes, and a second map. */
export function mapView(state, view, actions) {
  const { table } = state.answer;
  const place = table.axes.find((axis) => axis.isPlace);
  if (!place) return el("p", { class: "notice" }, t("map.none"));
  const others = table.axes.filter((axis) => axis !== place && axis.codes.length > 1);
  const figure = el("figure", { class: "map" }, el("p", { class: "quiet" }, t("loading")));
  shapes ??= api.geometry();
  shapes
    .then((found) => replace(figure, drawn(state, view, place, others, found, actions)))
    .catch(() => {
      shapes = null;
      replace(figure, el("p", { class: "notice bad", role: "alert" }, t("map.failed")));
    });
  const first = pickLists(state, others, state.picks, "pick", (picks) => actions.show({ picks }));
  const second = state.second && pickLists(state, others, state.second, "second", (picks) => actions.show({ second: picks }), `${t("map.second")}: `);
  return el(
    "div",
    {},
    el("div", { class: "row picks" }, first, classLists(state, view, actions), others.length ? twoMaps(state, others, actions) : null, second),
    figure,
  );
}

const pickLists = (state, others, picks, key, pick, of = "") =>
  others.map((axis) =>
    choice(
      `${of}${variableName(state.world.catalogue, axis.variable)}`,
      axis.codes.map((code, k) => [code, codeText(axis, k, state.texts, t("total"))]),
      axis.codes[pickOf(axis, picks)],
      (code) => pick({ ...picks, [axis.variable]: code }),
      { data: { key: `${key}-${axis.variable}` } },
    ),
  );

/** A second map of the same areas, which starts with the next category. */
function twoMaps(state, others, actions) {
  const next = () => {
    const axis = others[0];
    const now = pickOf(axis, state.picks);
    const free = axis.codes.map((_, k) => k).filter((k) => k !== axis.total && k !== now);
    const other = free.find((k) => k > now) ?? free[0] ?? now; // a total of 100 % everywhere is no map
    return { ...state.picks, [axis.variable]: axis.codes[other] };
  };
  const change = (event) => actions.show({ second: event.target.checked ? next() : null });
  return el(
    "label",
    { class: "check" },
    el("input", { type: "checkbox", checked: Boolean(state.second), data: { key: "map-two" }, on: { change } }),
    el("span", {}, t("map.two")),
  );
}

/** How the values become shades; limits of one's own are a list of numbers. */
function classLists(state, view, actions) {
  const method = choice(
    t("map.classes"),
    METHODS.map((one) => [one, t(`map.classes.${one}`)]),
    state.classes,
    (classes) => actions.show({ classes }),
    { data: { key: "map-classes" } },
  );
  if (state.classes !== "own") return [method];
  const isShare = SHARES.includes(view.measure.kind);
  const factor = isShare ? 100 : 1;
  const read = (event) => {
    const limits = event.target.value.split(/[;\s]+/).filter(Boolean).map((one) => Number(one.replace(",", ".")) / factor);
    actions.show({ limits: limits.filter((one) => Number.isFinite(one)).sort((a, b) => a - b) });
  };
  const field = el("input", {
    type: "text",
    value: state.limits.map((one) => String(Number((one * factor).toPrecision(6)))).join("; "),
    placeholder: isShare ? "10; 20; 30 (%)" : "100; 1000; 5000",
    data: { key: "map-limits" },
    on: { change: read },
  });
  return [method, el("label", { class: "field" }, el("span", {}, t("map.limits")), field)];
}

/** What a map shows, so that a reader knows of what a share is: "Male, % of row (persons)". */
function headingOf(state, view, others, picks) {
  const { catalogue } = state.world;
  const { measure } = view;
  const picked = others
    .map((axis) => [axis, pickOf(axis, picks)])
    .filter(([axis, k]) => k !== axis.total)
    .map(([axis, k]) => codeText(axis, k, state.texts, t("total")));
  const unit = unitName(state.answer.query.unit, catalogue);
  const what = picked.join(" · ") || t("total");
  if (measure.kind === "count") return t("map.number", { what, unit });
  if (measure.base) return t("map.compared", { what, measure: measureName(state, measure), unit });
  const place = state.answer.table.axes.find((axis) => axis.isPlace);
  const isInRows = view.down.axes.includes(place);
  const whole = state.values === "total" ? "table" : (state.values === "row") === isInRows ? "area" : "areas";
  return t(`map.share.${whole}`, { what, unit });
}

/** One map, or two of the same classes side by side that are moved together. */
function drawn(state, view, place, others, geometry, actions) {
  const known = new Map(place.codes.map((code, k) => [code, k]));
  const features = (geometry.features || [])
    .map((feature) => ({ feature, k: known.get(codeOf(feature, known)) }))
    .filter((one) => one.k !== undefined);
  if (!features.length) return [el("p", { class: "notice" }, t("map.nothing"))];
  const areas = finestOnly(features, place);
  const every = [state.picks, ...(state.second ? [state.second] : [])];
  const amounts = every.map((picks) => {
    const offset = others.reduce((sum, axis) => sum + pickOf(axis, picks) * axis.stride, 0);
    return areas.map(({ k }) => view.amountAt(offset + k * place.stride));
  });
  const values = amounts
    .flat()
    .filter((value) => value !== null)
    .sort((a, b) => a - b);
  const breaks = breaksOf(state.classes, values, CLASSES, state.limits);
  const project = projection(areas.map((one) => one.feature.geometry));
  const readout = el("p", { class: "readout hint", "aria-hidden": "true" }, t("map.hint"));
  const shared = { state, view, place, areas, breaks, project, readout, mark: marking(state, actions) };
  const maps = every.map((picks, n) => mapOf(shared, amounts[n], headingOf(state, view, others, picks)));
  const zoom = zoomable(maps.map((one) => one.drawing), project);
  for (const one of maps) one.drawing.addEventListener("focusin", (event) => zoom.reveal(event.target));
  maps[0].frame.append(zoom.buttons);
  const hasWithheld = amounts.flat().some((value) => value === null);
  return [
    shadeLegend(values, breaks, view.measure.text, hasWithheld), // in sight also where the map is not
    el("div", { class: "maps" }, maps.map((one) => el("div", {}, one.heading, one.frame))),
    readout,
  ];
}

function mapOf({ state, view, place, areas, breaks, project, readout, mark }, amounts, caption) {
  const paths = areas.map(({ feature, k }, n) => areaPath(feature, amounts[n], n, { state, view, place, k, breaks, project }));
  const ring = svg("path", { class: "ring", "aria-hidden": "true", d: "" }); // over all neighbours
  const markAt = (target) => {
    const area = target.closest?.("path[data-area]");
    if (area) mark(area.dataset.area);
  };
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${project.width} ${project.height}`,
      role: "group",
      "aria-label": `${caption}. ${t("map.about", { n: areas.length })}`,
      on: {
        keydown: (event) => {
          byArrow(event, paths);
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          markAt(event.target);
        },
        focusin: (event) => read(event, readout, paths, ring),
        focusout: () => ring.setAttribute("d", ""),
        pointermove: (event) => pointed(event, readout),
        pointerleave: hideTip,
        click: (event) => {
          if (drawing.dataset.dragged === "yes") return; // the end of a move
          event.target.focus?.();
          markAt(event.target);
        },
      },
    },
    hatching(),
    paths.toSorted((a, b) => a.classList.contains("chosen") - b.classList.contains("chosen")), // marks over neighbours
    ring,
  );
  const heading = el("p", { class: "map-heading" }, el("strong", {}, caption));
  return { drawing, heading, frame: el("div", { class: "map-frame" }, drawing) };
}

function areaPath(feature, amount, n, { state, view, place, k, breaks, project }) {
  const code = place.codes[k];
  const isMarked = state.marked.includes(code);
  const value = amount === null ? t("withheld") : view.measure.text(amount);
  const caption = `${codeText(place, k, state.texts, t("total"))}: ${value}`;
  const shade = amount === null ? "hatched" : `shade-${classOf(amount, breaks)}`;
  return svg("path", {
    d: path(feature.geometry, project),
    role: "button",
    "aria-label": caption,
    "aria-pressed": String(isMarked),
    tabindex: n ? "-1" : "0",
    data: { area: code, key: `area-${code}` },
    class: isMarked ? `${shade} chosen` : shade,
    fill: amount === null ? "url(#hatch)" : null,
  });
}

/** Show the value of an area in place of the hint. */
function showCaption(readout, caption) {
  readout.classList.remove("hint");
  readout.textContent = caption;
}

/** The value at the pointer. */
function pointed(event, readout) {
  const area = event.target.closest("path[role]");
  if (!area) {
    hideTip();
    return;
  }
  const caption = area.getAttribute("aria-label");
  showCaption(readout, caption);
  const { clientX: left, clientY: top } = event;
  showTip({ left, right: left, top: top - 10, bottom: top + 14, width: 0 }, caption);
}

/** Show the text of the area in focus; the focus comes back to the last one. */
function read(event, readout, paths, ring) {
  const area = event.target.closest("path[role]");
  if (!area) return;
  showCaption(readout, area.getAttribute("aria-label"));
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
  const deepest = Math.max(...features.map((one) => place.depths[one.k]));
  return features.filter((one) => place.depths[one.k] === deepest);
}

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
  const items = Array.from({ length: CLASSES }, (_, k) => values.filter((value) => classOf(value, breaks) === k))
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
