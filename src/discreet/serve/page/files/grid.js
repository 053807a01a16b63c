// The table on the screen: nested headers in a real <table>, of which only what can be seen is in the document. A
// reader of 100,000 cells scrolls through a few hundred elements.

import { span, wordsOf } from "./answer.js";
import { el } from "./dom.js";
import { ROW, sizesOf } from "./grid_sizes.js";
import { number, percent, t } from "./language.js";
import { variableName } from "./names.js";

const SMALL = 1500; // tables of so many cells are drawn whole, so that the browser's own search and print find them
const BEYOND = 6; // lines drawn outside of what is seen

/** Draw a table into a place. `ask(index)` is called for a cell, `sortBy(column)` for a column. */
export class Grid {
  constructor(view, state, { ask, sortBy }) {
    Object.assign(this, { view, state, ask, sortBy, at: { row: 0, column: 0 }, drawn: "" });
    const nameOf = (axis) => variableName(state.world.catalogue, axis.variable);
    Object.assign(
      this,
      sizesOf(view, (axis, place) => this.words(axis, place), nameOf),
      { rowHeight: ROW },
    );
    this.head = el("thead");
    this.body = el("tbody");
    this.columns = el("colgroup");
    this.table = el(
      "table",
      {
        role: "grid",
        "aria-readonly": "true",
        "aria-labelledby": "result-title",
        class: "grid",
        "aria-rowcount": view.rowCount + this.headRows,
        "aria-colcount": view.columnCount + this.stubCount,
      },
      this.columns,
      this.head,
      this.body,
    );
    this.place = el(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": t("table.region"), data: { key: "scroller" } },
      this.table,
    );
    this.listen();
  }

  get stubCount() {
    return Math.max(1, this.view.down.axes.length);
  }

  get headRows() {
    return Math.max(1, this.view.across.axes.length);
  }

  get isWhole() {
    return this.view.rowCount * this.view.columnCount <= SMALL;
  }

  listen() {
    let waiting = false;
    this.place.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.draw();
      });
    });
    this.table.addEventListener("click", (event) => this.onClick(event));
    this.table.addEventListener("focusin", (event) => {
      if (event.target.matches("td[data-row]"))
        this.at = { row: Number(event.target.dataset.row), column: Number(event.target.dataset.column) };
    });
    this.table.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  words(axis, place) {
    return wordsOf(axis, place, this.state.texts, t("total"));
  }

  /** Which rows and columns are near enough to be drawn. */
  window() {
    const { rowCount, columnCount } = this.view;
    if (this.isWhole) return { top: 0, bottom: rowCount, left: 0, right: columnCount };
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.place;
    const top = Math.max(0, Math.floor(scrollTop / this.rowHeight) - BEYOND);
    const left = Math.max(0, Math.floor(scrollLeft / this.columnWidth) - 2);
    const tall = Math.ceil((clientHeight || 600) / this.rowHeight) + 2 * BEYOND;
    const wide = Math.ceil((clientWidth || 800) / this.columnWidth) + 4;
    return { top, bottom: Math.min(rowCount, top + tall), left, right: Math.min(columnCount, left + wide) };
  }

  draw() {
    const seen = this.window();
    const drawn = JSON.stringify(seen);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.seen = seen;
    const focused = this.body.contains(document.activeElement);
    this.before = seen.left * this.columnWidth;
    this.after = (this.view.columnCount - seen.right) * this.columnWidth;
    this.columns.replaceChildren(...this.widths());
    this.head.replaceChildren(...this.heads());
    this.body.replaceChildren(...this.lines());
    this.table.style.width = `${this.stubTotal + this.view.columnCount * this.columnWidth}px`;
    if (focused) (this.focusable() ?? this.place).focus({ preventScroll: true });
  }

  widths() {
    const column = (width) => el("col", { style: { width: `${width}px` } });
    const stubs = this.stubs.length ? this.stubs : [this.stubTotal];
    const { left, right } = this.seen;
    const inner = Array.from({ length: right - left }, () => column(this.columnWidth));
    return [
      ...stubs.map(column),
      this.before && column(this.before),
      ...inner,
      this.after && column(this.after),
    ].filter(Boolean);
  }

  heads() {
    const { across } = this.view;
    const rows = across.axes.length ? across.axes.map((_, k) => this.headRow(k)) : [this.plainHead()];
    let top = 0;
    return rows.map((cells, k) => {
      const height = this.headHeights[k];
      const row = el(
        "tr",
        { "aria-rowindex": k + 1, style: { height: `${height}px` } },
        k === 0 ? this.corners() : [],
        this.gap(this.before, "td"),
        cells,
        this.gap(this.after, "td"),
      );
      for (const cell of row.children) cell.style.top = `${top}px`;
      top += height;
      this.headTotal = top;
      return row;
    });
  }

  corners() {
    const names = this.view.down.axes.length
      ? this.view.down.axes.map((axis) => variableName(this.state.world.catalogue, axis.variable))
      : [""];
    let left = 0;
    return names.map((name, k) => {
      const sticky = this.sticky(left);
      left += this.stubs[k] || 0;
      const tag = name ? "th" : "td";
      return el(
        tag,
        {
          class: `corner ${sticky.class}`,
          scope: name ? "col" : null,
          rowspan: this.headRows,
          style: sticky.style,
          title: name,
        },
        el("span", {}, name),
      );
    });
  }

  sticky(left) {
    return this.isStuck ? { class: "stuck", style: { left: `${left}px` } } : { class: "", style: {} };
  }

  plainHead() {
    return [el("th", { scope: "col", class: "leaf" }, this.sortButton(0, t(`values.${this.state.values}`)))].map(
      (cell) => this.sorted(cell, 0),
    );
  }

  headRow(k) {
    const { across } = this.view;
    const axis = across.axes[k];
    const wide = span(across, k);
    const cells = [];
    for (let column = this.seen.left; column < this.seen.right;) {
      const until = Math.min(this.seen.right, (Math.floor(column / wide) + 1) * wide);
      cells.push(this.headCell(axis, k, column, until));
      column = until;
    }
    return cells;
  }

  headCell(axis, k, column, until) {
    const place = this.view.columnHeader(k, column);
    const words = this.words(axis, place);
    const leaf = k === this.view.across.axes.length - 1;
    const isTotal = place === axis.total ? " total" : "";
    const cell = el(
      "th",
      {
        scope: leaf ? "col" : "colgroup",
        colspan: until - column,
        title: words,
        class: (leaf ? "leaf" : "group") + isTotal,
        "aria-colindex": column + 1 + this.stubCount,
      },
      leaf
        ? this.sortButton(column, words)
        : el("span", { class: "label", style: { left: `${this.isStuck ? this.stubTotal + 12 : 12}px` } }, words),
    );
    return leaf ? this.sorted(cell, column) : cell;
  }

  sorted(cell, column) {
    const sort = this.state.sort;
    cell.setAttribute("aria-sort", sort?.column === column ? sort.direction : "none");
    return cell;
  }

  sortButton(column, words) {
    const sort = this.state.sort;
    const sign = sort?.column === column ? (sort.direction === "descending" ? "▼" : "▲") : "↕";
    return el(
      "button",
      {
        type: "button",
        class: "sort",
        data: { sort: column, key: `sort-${column}` },
        title: t("sort.by", { column: words }),
      },
      el("span", { class: "mark", "aria-hidden": "true" }, sign),
      el("span", { class: "label" }, words),
    );
  }

  gap(width, tag) {
    return width ? [el(tag, { class: "gap", "aria-hidden": "true" })] : [];
  }

  lines() {
    const { top, bottom } = this.seen;
    const rows = [];
    const spacer = (count) =>
      el(
        "tr",
        { class: "spacer", "aria-hidden": "true", style: { height: `${count * this.rowHeight}px` } },
        el("td", { colspan: 1 }),
      );
    if (top) rows.push(spacer(top));
    for (let row = top; row < bottom; row += 1) rows.push(this.line(row));
    if (bottom < this.view.rowCount) rows.push(spacer(this.view.rowCount - bottom));
    return rows;
  }

  line(row) {
    const { left, right } = this.seen;
    const cells = [];
    for (let column = left; column < right; column += 1) cells.push(this.cell(row, column));
    const { axes } = this.view.down;
    const isTotal = axes.length && axes.every((axis, k) => this.view.header(k, row) === axis.total);
    return el(
      "tr",
      {
        "aria-rowindex": row + 1 + this.headRows,
        class: isTotal ? "total" : null,
        style: { height: `${this.rowHeight}px` },
      },
      this.stubCells(row),
      this.gap(this.before, "td"),
      cells,
      this.gap(this.after, "td"),
    );
  }

  stubCells(row) {
    const { down } = this.view;
    if (!down.axes.length) return [el("th", { scope: "row", class: "stub stuck", style: { left: "0px" } }, t("total"))];
    let left = 0;
    return down.axes.map((axis, k) => {
      const tall = span(down, k);
      const begins = row % tall === 0 || row === this.seen.top;
      const until = Math.min(this.seen.bottom, (Math.floor(row / tall) + 1) * tall);
      const sticky = this.sticky(left);
      left += this.stubs[k];
      return begins || tall === 1 ? this.stub(axis, k, row, until - row, tall === 1, sticky) : null;
    });
  }

  stub(axis, k, row, tall, leaf, sticky) {
    const place = this.view.header(k, row);
    const words = this.words(axis, place);
    const label = el("span", { class: "label", style: leaf ? {} : { top: `${this.headTotal + 7}px` } }, words);
    const depth = Math.max(0, axis.depths[place] - 1);
    label.style.paddingInlineStart = `${Math.min(4, depth) * (this.narrow ? 8 : 14)}px`;
    return el(
      "th",
      {
        scope: leaf ? "row" : "rowgroup",
        rowspan: leaf ? null : tall,
        title: words,
        style: sticky.style,
        class: `stub ${leaf ? "" : "outer"} ${place === axis.total ? "total" : ""} ${sticky.class}`,
        "aria-colindex": k + 1,
      },
      label,
    );
  }

  cell(row, column) {
    const value = this.view.value(row, column);
    const here = row === this.at.row && column === this.at.column;
    const chosen = this.state.cell && this.view.index(row, column) === this.state.cell.index;
    return el(
      "td",
      {
        "aria-colindex": column + 1 + this.stubCount,
        tabindex: here ? "0" : "-1",
        data: { row, column },
        "aria-selected": chosen ? "true" : null,
        class: value === null ? "withheld" : null,
        title: value === null ? t("withheld") : null,
      },
      value === null
        ? [el("span", { "aria-hidden": "true" }, "•"), el("span", { class: "unseen" }, t("withheld"))]
        : this.shown(row, column, value),
    );
  }

  shown(row, column, value) {
    if (!this.view.share) return number(value);
    const share = this.view.share(row, column);
    return share === null ? "–" : percent(share);
  }

  /** Show which cell is being explained. */
  mark(index) {
    this.state = { ...this.state, cell: index === null ? null : { index } };
    for (const cell of this.body.querySelectorAll("td[data-row]")) {
      const chosen = this.view.index(Number(cell.dataset.row), Number(cell.dataset.column)) === index;
      if (chosen) cell.setAttribute("aria-selected", "true");
      else cell.removeAttribute("aria-selected");
    }
  }

  focusable() {
    return this.body.querySelector(`td[data-row="${this.at.row}"][data-column="${this.at.column}"]`);
  }

  onClick(event) {
    const sort = event.target.closest("button[data-sort]");
    if (sort) {
      this.sortBy(Number(sort.dataset.sort));
      return;
    }
    const cell = event.target.closest("td[data-row]");
    if (cell) this.choose(Number(cell.dataset.row), Number(cell.dataset.column));
  }

  choose(row, column) {
    this.goTo(row, column);
    this.ask(this.view.index(row, column), row, column);
  }

  onKey(event) {
    if (!event.target.matches("td[data-row]")) return;
    const { row, column } = this.at;
    const page = Math.max(1, Math.floor(this.place.clientHeight / this.rowHeight) - 2);
    const lastRow = this.view.rowCount - 1;
    const lastColumn = this.view.columnCount - 1;
    const aims = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + page, column],
      PageUp: [row - page, column],
      Home: [event.ctrlKey ? 0 : row, 0],
      End: [event.ctrlKey ? lastRow : row, lastColumn],
    };
    if (event.key === "Enter" || event.key === " ") this.choose(row, column);
    else if (event.key in aims) this.goTo(...aims[event.key]);
    else return;
    event.preventDefault();
  }

  /** Move the focus to a cell and bring it into sight, past the headers that stay. */
  goTo(row, column) {
    this.at = {
      row: Math.max(0, Math.min(row, this.view.rowCount - 1)),
      column: Math.max(0, Math.min(column, this.view.columnCount - 1)),
    };
    for (const old of this.body.querySelectorAll('td[tabindex="0"]')) old.tabIndex = -1;
    const top = this.at.row * this.rowHeight;
    const left = this.at.column * this.columnWidth;
    const room = this.place.clientHeight - this.headTotal;
    const wide = this.place.clientWidth - this.stubTotal;
    if (top < this.place.scrollTop) this.place.scrollTop = top;
    else if (top + this.rowHeight > this.place.scrollTop + room)
      this.place.scrollTop = top + this.rowHeight - room + 12;
    if (left < this.place.scrollLeft) this.place.scrollLeft = left;
    else if (left + this.columnWidth > this.place.scrollLeft + wide)
      this.place.scrollLeft = left + this.columnWidth - wide + 12;
    this.draw();
    const cell = this.focusable();
    if (cell) cell.tabIndex = 0;
    cell?.focus({ preventScroll: true });
  }
}
