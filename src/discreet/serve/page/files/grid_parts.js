// The elements of a table: nested headers, row headers and cells of the part that is in sight. It moves nothing and
// asks nothing; `grid` gives what is visible, the sizes, and the names.

import { span } from "./answer.js";
import { el } from "./dom.js";
import { labelLang, number, percent, t } from "./language.js";
import { variableName } from "./names.js";
import { markOf } from "./noise.js";

/** The widths of the columns, those out of sight together. */
export function widths(grid) {
  const column = (width) => el("col", { style: { width: `${width}px` } });
  const stubs = grid.stubs.length ? grid.stubs : [grid.stubTotal];
  const { left, right } = grid.seen;
  const inner = grid.columnWidths.slice(left, right).map(column);
  return [...stubs.map(column), grid.before && column(grid.before), ...inner, grid.after && column(grid.after)].filter(
    Boolean,
  );
}

/** The rows of the column headers. */
export function heads(grid) {
  const { across } = grid.view;
  const rows = across.axes.length ? across.axes.map((_, k) => headRow(grid, k)) : [plainHead(grid)];
  let top = 0;
  return rows.map((cells, k) => {
    const height = grid.headHeights[k];
    const row = el(
      "tr",
      { "aria-rowindex": k + 1, style: { height: `${height}px` } },
      k === 0 ? corners(grid) : [],
      gap(grid.before),
      cells,
      gap(grid.after),
    );
    for (const cell of row.children) cell.style.top = `${top}px`;
    top += height;
    return row;
  });
}

function corners(grid) {
  const names = grid.view.down.axes.length
    ? grid.view.down.axes.map((axis) => variableName(grid.state.world.catalogue, axis.variable))
    : [""];
  let left = 0;
  return names.map((name, k) => {
    const stuck = sticky(grid, left);
    left += grid.stubs[k] || 0;
    return el(
      name ? "th" : "td",
      {
        class: `corner ${stuck.class}`,
        scope: name ? "col" : null,
        rowspan: grid.headRows,
        style: stuck.style,
        "aria-colindex": k + 1,
        data: { full: name },
      },
      el("span", {}, name),
    );
  });
}

const sticky = (grid, left) =>
  grid.isStuck ? { class: "stuck", style: { left: `${left}px` } } : { class: "", style: {} };

function plainHead(grid) {
  const index = 1 + grid.stubCount;
  const cell = el(
    "th",
    { scope: "col", class: "leaf", "aria-colindex": index },
    sortButton(grid, 0, t(`values.${grid.state.values}`)),
  );
  return [sorted(grid, cell, 0)];
}

function headRow(grid, k) {
  const { across } = grid.view;
  const wide = span(across, k);
  const cells = [];
  for (let column = grid.seen.left; column < grid.seen.right;) {
    const until = Math.min(grid.seen.right, (Math.floor(column / wide) + 1) * wide);
    cells.push(headCell(grid, across.axes[k], k, column, until));
    column = until;
  }
  return cells;
}

function headCell(grid, axis, k, column, until) {
  const place = grid.view.columnHeader(k, column);
  const caption = grid.textOf(axis, place);
  const leaf = k === grid.view.across.axes.length - 1;
  const left = grid.isStuck ? grid.stubTotal + 12 : 12;
  const cell = el(
    "th",
    {
      scope: leaf ? "col" : "colgroup",
      colspan: until - column,
      data: { full: caption },
      class: (leaf ? "leaf" : "group") + (place === axis.total ? " total" : ""),
      "aria-colindex": column + 1 + grid.stubCount,
    },
    leaf
      ? sortButton(grid, column, caption, langOf(axis, place))
      : el("span", { class: "label", lang: langOf(axis, place), style: { left: `${left}px` } }, caption),
  );
  return leaf ? sorted(grid, cell, column) : cell;
}

function sorted(grid, cell, column) {
  const { sort } = grid.state;
  cell.setAttribute("aria-sort", sort?.column === column ? sort.direction : "none");
  return cell;
}

/** The language of a header: the text for totals is the page's. */
const langOf = (axis, place) => (place === axis.total ? null : labelLang());

function sortButton(grid, column, caption, lang = null) {
  const label = el("span", { class: "label", lang, style: { webkitLineClamp: String(grid.headLines) } }, caption);
  if (grid.isPrinting) return el("span", { class: "sort" }, label); // headings with buttons are printed on one page only
  const { sort } = grid.state;
  const sign = sort?.column === column ? (sort.direction === "descending" ? "▼" : "▲") : "↕";
  return el(
    "button",
    {
      type: "button",
      class: "sort",
      data: { sort: column, key: `sort-${column}` },
      "aria-description": t("sort.by", { column: caption }),
    },
    el("span", { class: "mark", "aria-hidden": "true" }, sign),
    label,
  );
}

const gap = (width) => (width ? [el("td", { class: "gap", "aria-hidden": "true" })] : []);

/** The rows in sight, and room for those before and after. */
export function lines(grid) {
  const { top, bottom } = grid.seen;
  const spacer = (count) =>
    el(
      "tr",
      { class: "spacer", "aria-hidden": "true", style: { height: `${count * grid.rowHeight}px` } },
      el("td", { colspan: 1 }),
    );
  const rows = Array.from({ length: bottom - top }, (_, k) => line(grid, top + k));
  if (top) rows.unshift(spacer(top));
  if (bottom < grid.view.rowCount) rows.push(spacer(grid.view.rowCount - bottom));
  return rows;
}

function line(grid, row) {
  const { left, right } = grid.seen;
  const { axes } = grid.view.down;
  const isTotal = axes.length && axes.every((axis, k) => grid.view.header(k, row) === axis.total);
  return el(
    "tr",
    {
      "aria-rowindex": row + 1 + grid.headRows,
      class: isTotal ? "total" : null,
      style: { height: `${grid.rowHeight}px` },
    },
    stubCells(grid, row),
    gap(grid.before),
    Array.from({ length: right - left }, (_, k) => cell(grid, row, left + k)),
    gap(grid.after),
  );
}

function stubCells(grid, row) {
  const { down } = grid.view;
  if (!down.axes.length) {
    const place = { scope: "row", class: "stub stuck", style: { left: "0px" }, "aria-colindex": 1 };
    return [el("th", place, t("total"))];
  }
  let left = 0;
  return down.axes.map((axis, k) => {
    const tall = span(down, k);
    const begins = row % tall === 0 || row === grid.seen.top;
    const until = Math.min(grid.seen.bottom, (Math.floor(row / tall) + 1) * tall);
    const stuck = sticky(grid, left);
    left += grid.stubs[k];
    return begins || tall === 1 ? stub(grid, axis, k, row, tall === 1 ? 1 : until - row, stuck) : null;
  });
}

function stub(grid, axis, k, row, tall, stuck) {
  const place = grid.view.header(k, row);
  const caption = grid.textOf(axis, place);
  const leaf = k === grid.view.down.axes.length - 1;
  const style = leaf ? {} : { top: `${grid.headTotal + 7}px` };
  const label = el("span", { class: "label", lang: langOf(axis, place), style }, caption);
  const depth = Math.max(0, axis.depths[place] - 1);
  label.style.paddingInlineStart = `${Math.min(4, depth) * (grid.narrow ? 8 : 14)}px`;
  return el(
    "th",
    {
      scope: leaf ? "row" : "rowgroup",
      rowspan: leaf ? null : tall,
      data: { full: caption },
      style: stuck.style,
      class: `stub ${leaf ? "" : "outer"} ${place === axis.total ? "total" : ""} ${stuck.class}`,
      "aria-colindex": k + 1,
    },
    label,
  );
}

function cell(grid, row, column) {
  const value = grid.view.value(row, column);
  const { beside, isUnreliable } = markOf(grid.view, grid.view.index(row, column), grid.state.noise);
  const here = row === grid.at.row && column === grid.at.column;
  const chosen = grid.state.cell && grid.view.index(row, column) === grid.state.cell.index;
  return el(
    "td",
    {
      "aria-colindex": column + 1 + grid.stubCount,
      tabindex: here ? "0" : "-1",
      data: { row, column },
      "aria-selected": chosen ? "true" : null,
      class: value === null ? "withheld" : [isColumnTotal(grid, column) && "total", isUnreliable && "unreliable"].filter(Boolean).join(" ") || null,
    },
    value === null
      ? [el("span", { "aria-hidden": "true" }, "•"), el("span", { class: "unseen" }, t("withheld"))]
      : [
          amount(grid, row, column, value),
          beside ? el("small", { class: "beside" }, ` ${beside}`) : null,
          isUnreliable ? el("span", { class: "unseen" }, ` ${t("noise.unreliable")}`) : null,
        ],
  );
}

const isColumnTotal = (grid, column) =>
  grid.view.across.axes.length &&
  grid.view.across.axes.every((axis, k) => grid.view.columnHeader(k, column) === axis.total);

function amount(grid, row, column, value) {
  if (!grid.view.share) return number(value);
  const share = grid.view.share(row, column);
  return share === null ? "–" : percent(share);
}
