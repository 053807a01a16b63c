// Groups of ages as spans of years: drawn as if all were equally wide, a wide group would look like a large one.

/** The spans [from, until) of labels such as "Under 15", "15 to 19 years", "20" and "85 and over"; null where they do
 * not follow each other, or are equally wide. The last, open one is taken to be as wide as the one before it. */
export function spansOf(labels) {
  const numbers = labels.map((label) => (label.match(/\d+/g) ?? []).map(Number));
  if (numbers.length < 3 || numbers.some((some) => !some.length || some.length > 2)) return null;
  const spans = numbers.map(([first, last], k) => {
    const next = numbers[k + 1]?.[0];
    if (k === 0 && last === undefined && next === first) return [0, first]; // below the next one
    return [first, next ?? 2 * first - numbers[k - 1][0], next === undefined || next === (last ?? first) + 1];
  });
  const widths = spans.slice(0, -1).map(([from, until]) => until - from);
  const isRow = spans.every(([, , follows = true]) => follows) && widths.every((width) => width > 0);
  return isRow && new Set(widths).size > 1 ? spans.map(([from, until]) => [from, until]) : null;
}
