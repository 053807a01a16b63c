// Classes of a map: the limits between shades, by one of four methods. Pure functions on sorted values.

const MOST_NATURAL = 600; // values that natural breaks are computed from

/** The lower limits of all classes but the first. */
export function breaksOf(method, values, classes, own = []) {
  if (!values.length) return [];
  const made = {
    quantile: () => Array.from({ length: classes - 1 }, (_, k) => values[Math.floor(((k + 1) * values.length) / classes)]),
    equal: () => {
      const [least, most] = [values[0], values.at(-1)];
      return Array.from({ length: classes - 1 }, (_, k) => least + ((k + 1) * (most - least)) / classes);
    },
    natural: () => natural(thinned(values), classes),
    own: () => own,
  }[method]();
  return [...new Set(made)].filter((edge) => edge > values[0]).sort((a, b) => a - b).slice(0, classes - 1);
}

const thinned = (values) =>
  values.length <= MOST_NATURAL
    ? values
    : Array.from({ length: MOST_NATURAL }, (_, k) => values[Math.round((k * (values.length - 1)) / (MOST_NATURAL - 1))]);

/** Natural breaks: the classes with the least sum of squared distances from their means (Fisher 1958, exact). */
function natural(values, classes) {
  const n = values.length;
  const k = Math.min(classes, n);
  const [sum, squares] = [[0], [0]];
  for (const value of values) {
    sum.push(sum.at(-1) + value);
    squares.push(squares.at(-1) + value * value);
  }
  const cost = (from, to) => squares[to] - squares[from] - (sum[to] - sum[from]) ** 2 / (to - from); // of values[from..to)
  let best = Array.from({ length: n + 1 }, (_, to) => (to ? cost(0, to) : 0));
  const starts = [];
  for (let group = 1; group < k; group += 1) {
    const next = Array(n + 1).fill(Infinity);
    const start = Array(n + 1).fill(0);
    for (let to = group + 1; to <= n; to += 1)
      for (let from = group; from < to; from += 1) {
        const whole = best[from] + cost(from, to);
        if (whole < next[to]) [next[to], start[to]] = [whole, from];
      }
    starts.push(start);
    best = next;
  }
  const edges = [];
  let to = n;
  for (const start of starts.reverse()) {
    to = start[to];
    edges.push(values[to]);
  }
  return edges;
}

export const classOf = (value, breaks) => breaks.filter((edge) => value >= edge).length;
