// How wide and high the parts of a table are. Texts are measured before anything is drawn, so that a table of which
// only a part is in the document does not change its shape while it is scrolled.

const PHONE = 600; // pixels
export const ROW = 27;
const LINE = 17; // pixels of a line in a column header
const MOST_LINES = 5;
const PADDING = 28; // of a column header, with the sign of its order
const EMPTY_STUB = 116;

const within = (least, size, most) => Math.min(most, Math.max(least, size));

/** The sizes of a view; `textOf(axis, place)` are the texts of its headers, `nameOf(axis)` the names of its axes. */
export function sizesOf(view, textOf, nameOf, hasNoise) {
  const narrow = window.innerWidth < PHONE;
  const measure = ruler(narrow ? 13.5 : 14.4);
  const stubs = view.down.axes.map((axis) =>
    widthOfStub(axis, textOf, nameOf(axis), { narrow, measure, axes: view.down.axes.length }),
  );
  const stubTotal = stubs.length ? stubs.reduce((sum, width) => sum + width, 0) : EMPTY_STUB;
  // row headers stay in sight unless they would fill a small screen
  const isStuck = stubTotal <= (narrow ? window.innerWidth - 60 : 800) * 0.62;
  const { leaves, lines } = headerSizes(view, textOf, { narrow, measure, hasNoise });
  const columnWidths = Array.from({ length: view.columnCount }, (_, k) => leaves[k % leaves.length]);
  const lefts = [0]; // column -> its left edge; one more at the end
  for (const width of columnWidths) lefts.push(lefts.at(-1) + width);
  const { axes } = view.across;
  const headHeights = axes.length ? axes.map((_, k) => (k === axes.length - 1 ? 14 + LINE * lines : ROW)) : [ROW];
  return { narrow, columnWidths, lefts, stubs, stubTotal, isStuck, headHeights, headLines: lines };
}

const measured = new Map(); // size -> text -> width
const largest = new WeakMap(); // table -> its largest number

/** A function that measures a text as it is drawn in a table. */
function ruler(size) {
  if (!measured.has(size)) measured.set(size, new Map());
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `600 ${size}px ${getComputedStyle(document.documentElement).fontFamily}`;
  const known = measured.get(size);
  return (text) => {
    if (!known.has(text)) known.set(text, pen.measureText(text).width);
    return known.get(text);
  };
}

function widthOfStub(axis, textOf, name, { narrow, measure, axes }) {
  const widths = axis.codes.map((_, place) => measure(textOf(axis, place)) + 14 * Math.max(0, axis.depths[place] - 1));
  const longest = widths.reduce((most, width) => Math.max(most, width), measure(name));
  return within(narrow ? 84 : 110, 30 + longest, narrow ? (axes > 1 ? 104 : 120) : 360);
}

/** The width of each innermost column, and how many lines the longest of their headers needs. */
function headerSizes(view, textOf, { narrow, measure, hasNoise }) {
  const leaf = view.across.axes.at(-1);
  const [least, most] = narrow ? [72, 124] : [84, 190];
  const numbers = PADDING - 6 + measure(widest(view) + (hasNoise ? " ± 100" : ""));
  if (!leaf) return { leaves: [within(104, numbers, most)], lines: 1 };
  const texts = view.across.shown.at(-1).map((place) => textOf(leaf, place));
  const leaves = texts.map((text) => {
    const longest = Math.max(...text.split(/\s+/).map(measure));
    const balanced = Math.sqrt(measure(text) * LINE * 2.2); // broad rather than high
    return Math.ceil(within(Math.max(least, numbers), PADDING + Math.max(longest, balanced), most));
  });
  const needed = texts.map((text, k) => linesOf(text, leaves[k] - PADDING, measure));
  return { leaves, lines: within(1, Math.max(...needed), MOST_LINES) };
}

/** About the longest number of a table. */
function widest(view) {
  if (view.shareAt) return "100.0 %";
  const { table } = view;
  if (!largest.has(table)) largest.set(table, table.values.reduce((top, value) => Math.max(top, value ?? 0), 0));
  return largest.get(table).toLocaleString("en");
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
