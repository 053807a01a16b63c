// The Vega bundle of the installed package: loaded when the first chart is drawn. Its expressions are interpreted, never
// compiled, so the page's policy allows no code made at run time.

import { language } from "./language.js";

const LOCALES = { en: { decimal: ".", thousands: "," }, de: { decimal: ",", thousands: "." } };
let loading = null;

function load() {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = new URL("vega-bundle.js", import.meta.url).href;
    script.onload = () => done(window.vegaEmbed);
    script.onerror = () => {
      loading = null;
      script.remove();
      failed(new Error(""));
    };
    document.head.append(script);
  });
  return loading;
}

/** Draw a specification into a place; the result has the view, which must be finalised. */
export async function draw(place, spec) {
  const embed = await load();
  return embed(place, spec, {
    mode: "vega-lite",
    ast: true,
    renderer: "svg",
    actions: false,
    logLevel: 1, // errors
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" },
    formatLocale: { ...LOCALES[language()], grouping: [3], currency: ["", ""] },
  });
}
