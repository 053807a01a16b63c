// A table as a spreadsheet (XLSX): title, nested headers with merged cells, numbers as numbers, notes below.

import { zipped } from "./zip.js";

const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE = "http://schemas.openxmlformats.org/package/2006";
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
export const STYLES = { plain: 0, title: 1, head: 2, count: 3, share: 4 };
const WIDTH = { stub: 28, column: 14 };

const part = (name, type) => `<Override PartName="/xl/${name}.xml" ContentType="${type}+xml"/>`;
const relation = (id, type, target) => `<Relationship Id="${id}" Type="${REL}/${type}" Target="${target}"/>`;
const relations = (...all) => `${HEAD}<Relationships xmlns="${PACKAGE}/relationships">${all.join("")}</Relationships>`;
const counted = (tag, items) => `<${tag} count="${items.length}">${items.join("")}</${tag}>`;
const font = (inside, size) => `<font>${inside}<sz val="${size}"/><name val="Calibri"/></font>`;
const SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml";

const TYPES = [
  '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>',
  '<Default Extension="xml" ContentType="application/xml"/>',
  part("workbook", `${SHEET}.sheet.main`),
  part("worksheets/sheet1", `${SHEET}.worksheet`),
  part("styles", `${SHEET}.styles`),
];
const LOOKS = [
  counted("numFmts", ['<numFmt numFmtId="164" formatCode="0.0%"/>']),
  counted("fonts", [font("", 11), font("<b/>", 14), font("<b/>", 11)]),
  counted("fills", ["none", "gray125"].map((kind) => `<fill><patternFill patternType="${kind}"/></fill>`)),
  counted("borders", ["<border/>"]),
  counted("cellStyleXfs", ["<xf/>"]),
  counted("cellXfs", [
    "<xf/>",
    '<xf fontId="1" applyFont="1"/>',
    '<xf fontId="2" applyFont="1" applyAlignment="1"><alignment wrapText="1" vertical="top"/></xf>',
    '<xf numFmtId="3" applyNumberFormat="1"/>',
    '<xf numFmtId="164" applyNumberFormat="1"/>',
  ]), // in the order of STYLES
  counted("cellStyles", ['<cellStyle name="Normal" xfId="0" builtinId="0"/>']),
];
const FILES = {
  "[Content_Types].xml": `${HEAD}<Types xmlns="${PACKAGE}/content-types">${TYPES.join("")}</Types>`,
  "_rels/.rels": relations(relation("r1", "officeDocument", "xl/workbook.xml")),
  "xl/_rels/workbook.xml.rels": relations(
    relation("r1", "worksheet", "worksheets/sheet1.xml"),
    relation("r2", "styles", "styles.xml"),
  ),
  "xl/workbook.xml":
    `${HEAD}<workbook xmlns="${MAIN}" xmlns:r="${REL}">` +
    '<sheets><sheet name="Table" sheetId="1" r:id="r1"/></sheets></workbook>',
  "xl/styles.xml": `${HEAD}<styleSheet xmlns="${MAIN}">${LOOKS.join("")}</styleSheet>`,
};

/** The workbook of lines of cells `{value, style}`; `merged` are ranges such as A1:B2, `fixed` the head that stays. */
export function workbook({ lines, merged, fixed }) {
  const rowXml = (line, row) => `<row r="${row + 1}">${line.map((cell, k) => cellXml(cell, k, row)).join("")}</row>`;
  const ranges = merged.map((one) => `<mergeCell ref="${one}"/>`).join("");
  const wide = Math.max(...lines.map((line) => line.length));
  const sheet = [
    `<sheetViews><sheetView workbookViewId="0">${pane(fixed)}</sheetView></sheetViews>`,
    `<cols>${columns(fixed.columns, wide)}</cols>`,
    `<sheetData>${lines.map(rowXml).join("")}</sheetData>`,
    merged.length ? `<mergeCells count="${merged.length}">${ranges}</mergeCells>` : "",
  ];
  const sheetXml = `${HEAD}<worksheet xmlns="${MAIN}">${sheet.join("")}</worksheet>`;
  return zipped({ ...FILES, "xl/worksheets/sheet1.xml": sheetXml }, `${SHEET}.sheet`);
}

function pane({ rows, columns: count }) {
  const corner = address(rows, count);
  return `<pane xSplit="${count}" ySplit="${rows}" topLeftCell="${corner}" activePane="bottomRight" state="frozen"/>`;
}

const columns = (stubs, wide) =>
  Array.from({ length: wide }, (_, k) => k + 1)
    .map((k) => `<col min="${k}" max="${k}" width="${k <= stubs ? WIDTH.stub : WIDTH.column}" customWidth="1"/>`)
    .join("");

function cellXml(cell, column, row) {
  if (!cell || cell.value === "" || cell.value === null) return "";
  const place = `r="${address(row, column)}" s="${cell.style ?? STYLES.plain}"`;
  if (typeof cell.value === "number") return `<c ${place}><v>${cell.value}</v></c>`;
  return `<c ${place} t="inlineStr"><is><t xml:space="preserve">${escaped(cell.value)}</t></is></c>`;
}

/** The name of a cell, such as B3, from places that begin at zero. */
export function address(row, column) {
  let letters = "";
  for (let left = column + 1; left > 0; left = Math.floor((left - 1) / 26))
    letters = String.fromCharCode(65 + ((left - 1) % 26)) + letters;
  return `${letters}${row + 1}`;
}

// characters that XML cannot hold are left out
const escaped = (text) =>
  String(text)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;");
