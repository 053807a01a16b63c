// What the noise may have done to cells: ranges of true counts, requested for many cells at once and stored with their
// answer; and the note beside a cell that states them.

import * as api from "./api.js";
import { number, percent, t } from "./language.js";
import { SHARES } from "./measures.js";
import { hideTip, showTip } from "./tip.js";

const UNRELIABLE = 0.2; // half of a range as a share of its number
const MOST = 1000; // cells of one request
const ranges = new WeakMap(); // table -> id of a measure -> {level, known: index -> {low, high}, coming}

const storedOf = (table, measure) => {
  if (!ranges.has(table)) ranges.set(table, new Map());
  const found = ranges.get(table);
  const id = measure?.id ?? "count";
  if (!found.has(id)) found.set(id, { level: 0.95, known: new Map(), coming: new Map() });
  return found.get(id);
};

/** The range of a cell that has arrived: {low, high}, both null where nothing is known of the noise. */
export const rangeOf = (table, index, measure) => storedOf(table, measure).known.get(index);
export const levelOf = (table) => percent(storedOf(table).level).replace(/[.,]0/, "");

/** Request the ranges of a measure of cells that have not arrived; resolves when all are here. */
export async function fetchRanges({ table, query }, cells, measure) {
  const stored = storedOf(table, measure);
  const isMissing = (one) => !stored.known.has(one) && !stored.coming.has(one);
  const missing = cells.filter((one) => isMissing(one) && (measure ? measure.at(one) : table.values[one]) !== null);
  for (let from = 0; from < missing.length; from += MOST) {
    const some = missing.slice(from, from + MOST);
    const arriving = api.ranges(query, some, comparedIn(measure, some)).then(({ level, ranges: found }) => {
      stored.level = level;
      for (const { cell, low, high } of found) stored.known.set(cell, { low, high });
    });
    const done = arriving.finally(() => some.forEach((one) => stored.coming.delete(one)));
    for (const one of some) stored.coming.set(one, done);
  }
  await Promise.all(new Set(cells.map((one) => stored.coming.get(one)).filter(Boolean)));
}

/** What cells are compared with, as the API takes it. */
function comparedIn(measure, cells) {
  if (!measure?.wholeAt) return {};
  const kind = SHARES.includes(measure.kind) ? "share" : measure.kind;
  return { compared: { kind, with: cells.map(measure.wholeAt) } };
}

/** What the switch of the noise adds to a cell: a text beside its number, or that it is unreliable. A difference is
 * unreliable where its sign is not certain. */
export function markOf(view, index, kind, measure) {
  const amount = kind === "off" ? null : measure.at(index);
  const range = amount === null ? null : rangeOf(view.table, index, measure);
  if (!range || range.low === null) return { beside: "", isUnreliable: false };
  const reach = range.high === null ? Infinity : Math.max(range.high - amount, amount - range.low);
  const isUnsure = measure.kind === "difference" ? range.low <= 0 && range.high >= 0 && reach > 0 : reach > UNRELIABLE * amount;
  const beside = Number.isFinite(reach) ? `± ${measure.plain(reach)}` : "";
  return { beside: kind === "beside" ? beside : "", isUnreliable: kind === "grey" && isUnsure };
}

/** A cell as text, such as "97,167; true value 97,164 to 97,170 with 95 %". */
function cellText(view, index, measure) {
  const { table } = view;
  const value = table.values[index];
  if (value === null) return t("withheld.long");
  const amount = measure.at(index);
  const isCount = measure.kind === "count";
  const shown = isCount ? number(value) : `${amount === null ? "–" : measure.text(amount)} (${number(value)})`;
  const range = rangeOf(table, index, measure);
  return range && amount !== null ? `${shown}; ${rangeText(range, measure, levelOf(table))}` : shown;
}

/** A range as text; an upper limit is missing where the count that is compared with may be zero. */
function rangeText({ low, high }, measure, level) {
  if (low === null) return t("cell.unknown");
  const key = measure.kind === "count" ? "cell.tip" : high === null ? "cell.tip.least" : "cell.tip.compared";
  return t(key, { low: measure.text(low), high: high === null ? "" : measure.text(high), level });
}

/** Makes the function that shows a note beside a cell or a header that is pointed at or has the focus. */
export function makePointer(answerOf, announce) {
  let now = null;
  return async (grid, cell, isFocus) => {
    now = cell;
    if (!cell) {
      hideTip();
      return;
    }
    if (cell.matches("th")) {
      if (isClipped(cell)) showTip(cell, cell.dataset.full);
      else hideTip();
      return;
    }
    const index = grid.view.index(Number(cell.dataset.row), Number(cell.dataset.column));
    const measure = grid.view.measureAt(Number(cell.dataset.column));
    const { table } = grid.view;
    const answer = answerOf();
    if (answer.table !== table) return;
    const caption = () => cellText(grid.view, index, measure);
    showTip(cell, caption());
    if (!rangeOf(table, index, measure) && measure.at(index) !== null) {
      await fetchRanges(answer, [index, ...grid.cellsInSight(measure)], measure).catch(() => null); // then the value only
      if (now !== cell || !cell.isConnected) return;
      showTip(cell, caption());
    }
    if (isFocus) announce(caption());
  };
}

/** Whether a header shows only a part of its text. */
function isClipped(cell) {
  const label = cell.querySelector(".label, span:not([aria-hidden])") ?? cell;
  return label.scrollWidth > label.clientWidth + 1 || label.scrollHeight > label.clientHeight + 1;
}
