// Calls of the table builder's API. A refusal or an error of the server arrives as a `Problem` with its message.

import { language } from "./language.js";

/** The problem that the server reports (RFC 9457), or that it cannot be reached. */
class Problem extends Error {
  constructor(status, details) {
    super(details.detail || details.title || "");
    Object.assign(this, { status, details });
  }

  get isRefusal() {
    return (this.details.type || "").startsWith("/problems/refused-");
  }
}

const BASE = "api/v1/";
const KEY = "table-builder-token";
let token = kept();

function kept() {
  try {
    return sessionStorage.getItem(KEY) || "";
  } catch {
    return ""; // storage is switched off
  }
}

/** Send a token with every question from now on, as long as this tab is open; empty: none. */
export function holdToken(given) {
  token = given;
  try {
    if (given) sessionStorage.setItem(KEY, given);
    else sessionStorage.removeItem(KEY);
  } catch {
    // storage is switched off: the token holds until the page is left
  }
}

export const heldToken = () => token;
export const hasToken = () => Boolean(token);

/** The server answers in the language of the page, and to the holder of the token. */
const headers = () => ({ "Accept-Language": language(), ...(token ? { Authorization: `Bearer ${token}` } : {}) });

async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...headers(), ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {});
  }
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

const json = async (path, options) => (await call(path, options)).json();
const posted = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

export const settings = () => json("page/settings");
export const geometry = () => json("page/geometry");
export const catalogue = () => json(`${BASE}catalogue`);
export const breakdown = (name) => json(`${BASE}breakdowns/${encodeURIComponent(name)}`);
export const variable = (name) => json(`${BASE}variables/${encodeURIComponent(name)}`);
export const search = (text, unit) => json(`${BASE}search?${new URLSearchParams({ text, unit })}`);
export const preview = (query, signal) => json(`${BASE}preview`, posted(query, signal));
export const nearest = (query, signal) => json(`${BASE}preview?nearest=true`, posted(query, signal));
export const table = (query, signal) => json(`${BASE}table`, posted(query, signal));
export const ranges = (query, cells, more = {}) => json(`${BASE}noise-ranges`, posted({ query, cells, ...more }));
export const examples = (query) => json(`page/examples?token=${hasToken()}`, posted(query));
export const save = (query, extra) => json(`${BASE}queries`, posted({ query, extra }));
export const saved = (name) => json(`${BASE}queries/${encodeURIComponent(name)}`);
export const submit = (query, format) => json(`${BASE}jobs`, posted({ query, format }));
export const job = (name) => json(`${BASE}jobs/${encodeURIComponent(name)}`);
export const jobs = async () => (await json(`${BASE}jobs`)).jobs;
export const dropJob = (name) => call(`${BASE}jobs/${encodeURIComponent(name)}`, { method: "DELETE" });
export const jobTable = (name) => json(`${BASE}jobs/${encodeURIComponent(name)}/result`);
export const jobFile = async (name) => fileIn(await call(`${BASE}jobs/${encodeURIComponent(name)}/result`));

/** The table as a file with one line for each cell, or with a line for each row in PX. */
export async function file(query, format, columns) {
  const asked = new URLSearchParams({ format, ranges: "true" });
  if (format === "px") asked.set("columns", columns.join(","));
  return fileIn(await call(`${BASE}table?${asked}`, posted(query)));
}

/** The table as a file in a layout: {columns, texts, percent, compare, counts, ranges, lines, fields}. */
export const laidOutFile = async (query, format, layout) =>
  fileIn(await call(`${BASE}files`, posted({ query, format, layout })));

async function fileIn(response) {
  const named = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "");
  return { name: named ? named[1] : "table", blob: await response.blob() };
}
