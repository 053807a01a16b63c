// The texts of the page in the reader's language, and numbers as that language writes them.

import de from "./texts/de.js";
import en from "./texts/en.js";

export const LANGUAGES = { en: "English", de: "Deutsch" };
const TEXTS = { en, de };
let now = "en";

/** The language that a reader most likely wants. */
export function preferred(wished) {
  return wished.map((one) => one.slice(0, 2).toLowerCase()).find((one) => one in TEXTS) || "en";
}

/** Speak a language from now on. */
export function speak(lang) {
  now = lang in TEXTS ? lang : "en";
  document.documentElement.lang = now;
}

/** The text of a key, with its placeholders filled in; with a number `n` the form that goes with it. */
export function t(key, filled = {}) {
  const texts = TEXTS[now];
  const form = "n" in filled ? `${key}.${new Intl.PluralRules(now).select(filled.n)}` : key;
  const caption = texts[form] ?? texts[key] ?? key;
  return caption.replace(/\{(\w+)\}/g, (all, name) => (name in filled ? shown(filled[name]) : all));
}

/** The text of a key, or nothing where the language has none. */
export const maybe = (key) => TEXTS[now][key];

/** Whether a text is the page's own for a key, so that it can be shown in the reader's language. */
export const isOwn = (key, caption) => Object.values(TEXTS).some((texts) => texts[key] === caption);

const shown = (value) => (typeof value === "number" ? number(value) : String(value));

/** A whole number. */
export const number = (value) => formatter({ maximumFractionDigits: 0 }).format(value);

/** A number with at most three decimals. */
export const decimal = (value) => formatter({ maximumFractionDigits: 3 }).format(value);

/** A share as a percentage with one decimal. */
export const percent = (share) =>
  formatter({ style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(share);

const formatters = new Map();
function formatter(options) {
  const key = now + JSON.stringify(options);
  if (!formatters.has(key)) formatters.set(key, new Intl.NumberFormat(now, options));
  return formatters.get(key);
}

/** A list as text. */
export const listed = (caption) => new Intl.ListFormat(now, { type: "conjunction" }).format(caption);

export const language = () => now;

let office = "en";

/** The language in which the office labels its codes. */
export function labelledIn(lang) {
  office = lang;
}

/** The `lang` of labels from the office, where it is not that of the page. */
export const labelLang = () => (office === now ? null : office);
