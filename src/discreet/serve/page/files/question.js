// The question: the axes in rows and columns, and the question that they make. Pure functions on the state.

export const TOTAL = "_T";
export const variableOf = (axis) => axis.breakdown.split(".")[0];
export const axesOf = (state) => [...state.rows, ...state.columns];

/** The question as the API takes it: axes in the order rows, then columns. */
export function queryOf(state) {
  const query = { unit: state.unit, axes: axesOf(state).map(axisBody) };
  if (state.where.trim()) query.where = state.where.trim();
  if (state.count) query.count = state.count;
  return query;
}

function axisBody(axis) {
  const body = { breakdown: axis.breakdown };
  if (axis.codes?.length) body.codes = axis.codes;
  if (axis.groups && Object.keys(axis.groups).length) body.groups = axis.groups;
  return body;
}

/** One text for a question whatever the layout: two states with the same text have the same answer. */
export function sameness(query) {
  const axes = query.axes.map((axis) =>
    JSON.stringify([axis.breakdown, [...(axis.codes || [])].sort(), axis.groups || {}]),
  );
  return JSON.stringify([query.unit, axes.sort(), query.where || "", query.count || ""]);
}

/** How many codes an axis has in the answer. */
export function lengthOf(axis, catalogue) {
  if (axis.codes?.length) return axis.codes.length;
  if (axis.groups && Object.keys(axis.groups).length) return Object.keys(axis.groups).length + 1;
  return breakdownsOf(catalogue, variableOf(axis)).find((one) => one.name === axis.breakdown)?.codes ?? 1;
}

/** How many cells the answer has. */
export const cellsOf = (state) =>
  axesOf(state).reduce((product, axis) => product * lengthOf(axis, state.world.catalogue), 1);

export const variableNamed = (catalogue, name) => catalogue.variables.find((one) => one.name === name);
export const breakdownsOf = (catalogue, name) => variableNamed(catalogue, name)?.breakdowns ?? [];

/** The variables that a unit has. */
export const variablesOf = (state) => state.world.catalogue.variables.filter((one) => one.units.includes(state.unit));

/** The breakdown that a variable starts with: the coarsest that divides it. */
export const firstBreakdown = (variable) =>
  (variable.breakdowns.find((one) => one.codes > 1) ?? variable.breakdowns[0]).name;

/** Add a variable: of the first two the longer is in rows, the shorter in columns; others go to the rows. */
export function added(state, variable, side = "") {
  if (axesOf(state).some((axis) => variableOf(axis) === variable.name)) return {};
  const axis = { breakdown: firstBreakdown(variable), codes: [], groups: {} };
  const length = (one) => lengthOf(one, state.world.catalogue);
  if (!side && state.rows.length === 1 && !state.columns.length && length(axis) > length(state.rows[0]))
    return { rows: [axis], columns: state.rows };
  const short = length(axis) <= 12 && !state.columns.length && state.rows.length;
  const where = side || (short ? "columns" : "rows");
  return { [where]: [...state[where], axis] };
}

/** Take a variable out. */
export function removed(state, name) {
  const keep = (axes) => axes.filter((axis) => variableOf(axis) !== name);
  return { rows: keep(state.rows), columns: keep(state.columns) };
}

/** Put a variable at a place of the rows or columns, wherever it was. */
export function moved(state, name, side, place) {
  const axis = axesOf(state).find((one) => variableOf(one) === name);
  if (!axis) return {};
  const left = removed(state, name);
  const at = Math.max(0, Math.min(place, left[side].length));
  return { ...left, [side]: [...left[side].slice(0, at), axis, ...left[side].slice(at)] };
}

/** The side and place of a variable. */
export function placeOf(state, name) {
  const side = state.rows.some((axis) => variableOf(axis) === name) ? "rows" : "columns";
  return { side, place: state[side].findIndex((axis) => variableOf(axis) === name) };
}

/** Put another axis in the place of the one of its variable. */
export function changed(state, axis) {
  const swap = (axes) => axes.map((one) => (variableOf(one) === variableOf(axis) ? axis : one));
  return { rows: swap(state.rows), columns: swap(state.columns) };
}

/** Take over a question of the server's: variables stay on the side where they were. */
export function taken(state, query) {
  const inColumns = new Set(state.columns.map(variableOf));
  const axes = (query.axes || []).map((axis) => ({
    codes: [],
    groups: {},
    ...(typeof axis === "string" ? { breakdown: axis } : axis),
  }));
  const sides = {
    rows: axes.filter((axis) => !inColumns.has(variableOf(axis))),
    columns: axes.filter((axis) => inColumns.has(variableOf(axis))),
  };
  const { rows, columns } = sides.rows.length ? sides : laidOut(axes, state.world.catalogue); // no table of one long row
  return { unit: query.unit || state.unit, where: query.where || "", count: query.count || "", rows, columns };
}

/** A layout for axes without one: the last of two or more goes into the columns, if it is short; else the shortest. */
export function laidOut(axes, catalogue) {
  if (axes.length < 2) return { rows: axes, columns: [] };
  const lengths = axes.map((axis) => lengthOf(axis, catalogue));
  const across = lengths.indexOf(Math.min(...lengths.filter((length) => length > 1), Infinity));
  const column = across < 0 ? axes.length - 1 : across;
  return { rows: axes.filter((_, k) => k !== column), columns: [axes[column]] };
}
