// The texts of the page in the reader's language, and numbers as that language writes them.

export const LANGUAGES = { en: "English", de: "Deutsch" };
const TEXTS = {}; // language -> key -> text, as far as they are loaded
let now = "en";

/** The texts of a language that are in the page itself. */
export function learn(lang, texts) {
  TEXTS[lang] = texts;
}

/** The language that a reader most likely wants. */
export function preferred(wished) {
  return wished.map((one) => one.slice(0, 2).toLowerCase()).find((one) => one in LANGUAGES) || "en";
}

/** Speak a language from now on; the texts of one that the page does not have are requested. */
export async function speak(lang) {
  const chosen = lang in LANGUAGES ? lang : "en";
  if (!(chosen in TEXTS)) {
    const found = await fetch(`${document.getElementById("first").dataset.texts}${chosen}.json`);
    if (!found.ok) return;
    learn(chosen, await found.json());
  }
  now = chosen;
  document.documentElement.lang = now;
}

/** The text of a key, with its placeholders filled in; with a number `n` the form that goes with it. */
export function t(key, filled = {}) {
  const texts = TEXTS[now];
  const form = "n" in filled ? `${key}.${made("plural", () => new Intl.PluralRules(now)).select(filled.n)}` : key;
  const caption = texts[form] ?? texts[key] ?? key;
  return caption.replace(/\{(\w+)\}/g, (all, name) => (name in filled ? shown(filled[name]) : all));
}

const shown = (value) => (typeof value === "number" ? number(value) : String(value));

/** A whole number. */
export const number = (value) => formatter("number", { maximumFractionDigits: 0 }).format(value);

/** A number with at most three decimals. */
export const decimal = (value) => formatter("decimal", { maximumFractionDigits: 3 }).format(value);

/** A share as a percentage with one decimal. */
export const percent = (share) =>
  formatter("percent", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(share);

/** A number with a fixed number of decimals. */
export const fixed = (value, digits) =>
  formatter(`fixed ${digits}`, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);

/** A whole number with its sign. */
export const signed = (value) => formatter("signed", { maximumFractionDigits: 0, signDisplay: "exceptZero" }).format(value);

const formatters = new Map(); // language -> kind -> formatter: thousands of numbers are written in one drawing
function made(kind, make) {
  if (!formatters.has(now)) formatters.set(now, new Map());
  const known = formatters.get(now);
  if (!known.has(kind)) known.set(kind, make());
  return known.get(kind);
}

const formatter = (kind, options) => made(kind, () => new Intl.NumberFormat(now, options));

/** A list as text. */
export const listed = (captions) => made("list", () => new Intl.ListFormat(now, { type: "conjunction" })).format(captions);

export const language = () => now;

let labelled = ["en"];

/** The languages in which labels come from the office. */
export function labelledIn(languages) {
  labelled = languages;
}

/** The `lang` of labels from the office, where they are not in that of the page. */
export const labelLang = () => (labelled.includes(now) ? null : labelled[0]);
