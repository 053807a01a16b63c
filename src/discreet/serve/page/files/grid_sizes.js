// How wide and high the parts of a table are. Sizes are computed from the lengths of texts, not measured, so that a
// table of which only a part is drawn does not change its shape while it is scrolled.

const PHONE = 600; // pixels
export const ROW = 36;
const EMPTY_STUB = 116;

const longestOf = (texts) => texts.reduce((most, text) => Math.max(most, text.length), 0);
const within = (least, size, most) => Math.min(most, Math.max(least, size));

/** The sizes of a view; `textOf(axis, place)` are the texts of its headers, `nameOf(axis)` the names of its rows' axes. */
export function sizesOf(view, textOf, nameOf) {
  const narrow = window.innerWidth < PHONE;
  const columnWidth = widthOfColumns(view, textOf, narrow);
  const stubs = view.down.axes.map((axis) => widthOfStub(axis, textOf, nameOf(axis), narrow, view.down.axes.length));
  const stubTotal = stubs.length ? stubs.reduce((sum, width) => sum + width, 0) : EMPTY_STUB;
  // row headers stay in sight unless they would fill a small screen
  const isStuck = stubTotal <= (narrow ? window.innerWidth - 60 : 800) * 0.62;
  return { narrow, columnWidth, stubs, stubTotal, isStuck, headHeights: headHeights(view, textOf, columnWidth) };
}

function widthOfStub(axis, textOf, name, narrow, axes) {
  const texts = axis.codes.map((_, place) => textOf(axis, place).length + 2 * axis.depths[place]);
  const longest = texts.reduce((most, length) => Math.max(most, length), 1.1 * name.length); // names are bold
  return within(narrow ? 84 : 116, 26 + 8 * longest, narrow ? (axes > 1 ? 104 : 120) : 340);
}

/** Wide enough for the longest term of a header, within reason; one width for all. */
function widthOfColumns(view, textOf, narrow) {
  const leaf = view.across.axes.at(-1);
  const longest = longestOf(leaf ? leaf.codes.flatMap((_, place) => textOf(leaf, place).split(/[\s-]/)) : []);
  return narrow ? within(72, 24 + 7.6 * longest, 104) : within(104, 44 + 9.2 * longest, 184);
}

function headHeights(view, textOf, columnWidth) {
  const { axes } = view.across;
  const leaf = axes.at(-1);
  if (!leaf) return [ROW];
  const length = 8.2 * longestOf(leaf.codes.map((_, place) => textOf(leaf, place)));
  const room = columnWidth - 24;
  const last = length < room ? 38 : length < 1.7 * room ? 56 : 74; // one, two or three lines
  return axes.map((axis) => (axis === leaf ? last : ROW));
}
