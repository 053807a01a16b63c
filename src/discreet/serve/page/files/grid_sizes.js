// How wide and high the parts of a table are. Texts are measured before anything is drawn, so that a table of which
// only a part is in the document does not change its shape while it is scrolled.

const PHONE = 600; // pixels
const ROWS = { normal: 25, compact: 20 }; // pixels
const LINES = { normal: 17, compact: 15 }; // pixels of a line in a column header
const LETTERS = { normal: 14.4, compact: 13 };
const NAMES = 22; // pixels of the line with the names of the columns' variables
const MOST_LINES = 5;
const PADDING = 27; // of a column header, with the sign of its order
const SIDES = 25; // of a number
const MOST_STUB = 520; // pixels of a row header
const EMPTY_STUB = 116;
const NARROW_STUB = 110;

const within = (least, size, most) => Math.min(most, Math.max(least, size));

const NARROWEST = 40;
const chosen = new Map(); // what a reader has made wider or narrower in this visit: key -> pixels

/** The keys by which the width of a column or of a row header is stored: columns of one category have one width. */
export const columnKey = (view, column) => {
  const axis = view.across.axes.at(-1);
  return axis ? `${axis.variable}=${axis.codes[view.columnHeader(view.across.axes.length - 1, column)]}` : "=";
};
export const stubKey = (axis) => `${axis?.variable ?? ""} rows`;

/** Change a width; without one, what suits the texts is back. */
export function resize(key, width = null) {
  if (width === null) chosen.delete(key);
  else chosen.set(key, Math.max(NARROWEST, Math.round(width)));
}

/** The sizes of a view in `room` pixels; `textOf(axis, place)` are the texts of its headers, `nameOf(axis)` the names of
 * its axes. */
export function sizesOf(view, textOf, nameOf, { room, hasNoise, density, indents, folds }) {
  const narrow = window.innerWidth < PHONE;
  const measure = ruler(narrow ? 13.5 : LETTERS[density]);
  const line = LINES[density];
  const { leaves, lines } = headerSizes(view, textOf, { narrow, measure, hasNoise, line });
  const columnWidths = Array.from(
    { length: view.columnCount },
    (_, k) => (chosen.size ? chosen.get(columnKey(view, k)) : null) ?? leaves[view.fields[k] % leaves.length],
  );
  const lefts = [0]; // column -> its left edge; one more at the end
  columnWidths.forEach((width, k) => lefts.push(lefts[k] + width));
  const wanted = view.down.axes.map((axis, k) =>
    widthOfStub(axis, textOf, nameOf(axis), {
      narrow,
      measure,
      axes: view.down.axes.length,
      indents: indents[k],
      hasFolds: folds[k].size > 0,
      shown: view.down.shown[k],
      hasLines: view.across.axes.length > 0,
    }),
  );
  const fitted = narrow ? wanted : shrunk(wanted, Math.max(room - lefts.at(-1), room / 2));
  const stubs = view.down.axes.map((axis, k) => chosen.get(stubKey(axis)) ?? fitted[k]);
  const stubTotal = stubs.length ? stubs.reduce((sum, width) => sum + width, 0) : EMPTY_STUB;
  // row headers stay in sight unless they would fill the screen
  const isStuck = stubTotal <= (narrow ? window.innerWidth - 60 : room) * 0.62 || stubTotal + lefts.at(-1) <= room;
  const { axes } = view.across;
  const rowHeight = ROWS[narrow ? "normal" : density];
  const headHeights = axes.length
    ? [NAMES, ...axes.map((_, k) => (k === axes.length - 1 ? 14 + line * lines : rowHeight))]
    : [rowHeight];
  return { narrow, columnWidths, lefts, stubs, stubTotal, isStuck, headHeights, headLines: lines, rowHeight };
}

const measured = new Map(); // size -> text -> width
const largest = new WeakMap(); // table -> its largest number

/** A function that measures a text as it is drawn in a table. */
function ruler(size) {
  if (!measured.has(size)) measured.set(size, new Map());
  const known = measured.get(size);
  let pen = null; // only where a text is new
  return (text) => {
    if (!known.has(text)) {
      pen ??= penOf(size);
      known.set(text, pen.measureText(text).width);
    }
    return known.get(text);
  };
}

function penOf(size) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `600 ${size}px ${getComputedStyle(document.documentElement).fontFamily}`;
  return pen;
}

/** Widths whose sum is at most some pixels, if that leaves room for words: the widest ones give way. */
function shrunk(widths, most) {
  let spare = most;
  const given = new Map();
  [...widths.keys()]
    .sort((a, b) => widths[a] - widths[b])
    .forEach((k, done) => {
      given.set(k, Math.max(NARROW_STUB, Math.min(widths[k], spare / (widths.length - done))));
      spare -= given.get(k);
    });
  return widths.map((_, k) => Math.floor(given.get(k)));
}

function widthOfStub(axis, textOf, name, { narrow, measure, axes, indents, hasFolds, shown, hasLines }) {
  const widths = shown.map((place) => measure(textOf(axis, place)) + (narrow ? 6 : 14) * indents.get(place));
  const word = Math.max(...name.split(/\s+/).map(measure));
  const inLines = Math.max(0.6 * measure(name), word); // above several columns there is room for two
  const heading = (narrow ? word : hasLines ? inLines : measure(name)) + (hasFolds ? 16 : 0); // a narrow one is wrapped
  const longest = widths.reduce((most, width) => Math.max(most, width), heading);
  const room = narrow ? 18 + (hasFolds ? 15 : 0) : 30 + (hasFolds ? 22 : 0);
  if (!narrow) return within(NARROW_STUB, room + longest, MOST_STUB);
  return within(84, room + longest, axes > 1 ? within(104, room + heading, 132) : Math.min(200, window.innerWidth * 0.45));
}

/** The width of each innermost column, and how many lines the longest of their headers needs. */
function headerSizes(view, textOf, { narrow, measure, hasNoise, line }) {
  const leaf = view.across.axes.at(-1);
  const [least, most] = narrow ? [72, 124] : [84, 190];
  const numbers = SIDES + measure(widest(view) + (hasNoise ? " ± 100" : ""));
  if (!leaf) return { leaves: [within(104, numbers, most)], lines: 1 };
  const texts = view.across.shown.at(-1).map((place) => textOf(leaf, place));
  const leaves = texts.map((text) => {
    const longest = Math.max(...text.split(/\s+/).map(measure));
    const balanced = Math.sqrt(measure(text) * line * 2.4); // broad rather than high
    return Math.ceil(within(Math.max(least, numbers), PADDING + Math.max(longest, balanced), most));
  });
  const needed = texts.map((text, k) => linesOf(text, leaves[k] - PADDING, measure));
  return { leaves, lines: within(1, Math.max(...needed), MOST_LINES) };
}

/** About the longest number of a table. */
function widest(view) {
  const { table, measure } = view;
  const counts = measure.kind === "count" || view.across.axes.at(-1)?.isMeasure;
  if (!counts && measure.kind !== "difference") return measure.widest;
  if (!largest.has(table)) largest.set(table, table.values.reduce((top, value) => Math.max(top, value ?? 0), 0));
  return `${measure.kind === "difference" ? "+" : ""}${largest.get(table).toLocaleString("en")}`;
}

/** How many lines a text takes in a width, broken between its parts, and inside one that is longer than a line. */
function linesOf(text, room, measure) {
  let lines = 1;
  let used = 0;
  for (const part of text.split(/\s+/)) {
    const width = measure(part);
    if (used && used + measure(" ") + width > room) {
      lines += 1;
      used = 0;
    }
    used += (used ? measure(" ") : 0) + width;
    while (used > room) {
      lines += 1;
      used -= room;
    }
  }
  return lines;
}
