// What variables mean and where their data come from, as the office describes it.

import { el, signButton } from "./dom.js";
import { labelLang, t } from "./language.js";

const isDescribed = (variable) => Boolean(variable.description || variable.source);

/** The definition of a variable; nothing where the office gives none. */
export function aboutView(variable) {
  if (!isDescribed(variable)) return null;
  return el(
    "p",
    { class: "quiet about", lang: labelLang() },
    variable.description,
    variable.source ? el("small", {}, ` ${t("source", { source: variable.source })}`) : null,
  );
}

/** A button that shows the definition of a variable below it. */
export function aboutButton(variable, name, isOpen, press) {
  if (!isDescribed(variable)) return null;
  return signButton("i", t("about", { name }), press, {
    class: "sign info",
    "aria-expanded": String(isOpen),
    data: { key: `about-${variable.name}` },
  });
}
