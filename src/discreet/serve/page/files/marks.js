// Areas that are marked: in the table by their row header, on the map by a click; the table can be of these only.

import { codeText } from "./answer.js";
import { button, el } from "./dom.js";
import { listed, t } from "./language.js";
import { TOTAL, axesOf, changed, variableOf } from "./question.js";

const NAMED = 6; // areas that are named

/** The function that marks an area, or takes the mark away; none where there is no map. */
export function marking(state, actions) {
  if (!state.world.settings.geometry) return null;
  return (code) => {
    const { marked } = state;
    actions.show({ marked: marked.includes(code) ? marked.filter((one) => one !== code) : [...marked, code] });
  };
}

const placeAxis = (state) => state.answer.table.axes.find((axis) => axis.isPlace);

/** Which areas are marked, and what can be done with them. */
export function markedView(state, actions) {
  const axis = placeAxis(state);
  const places = axis ? state.marked.map((code) => axis.codes.indexOf(code)).filter((place) => place >= 0) : [];
  if (!places.length) return null;
  const names = places.map((place) => codeText(axis, place, state.texts, t("total")));
  const more = names.length > NAMED ? [t("areas.more", { n: names.length - NAMED })] : [];
  const only = () => {
    const asked = axesOf(state).find((one) => variableOf(one) === axis.variable);
    const codes = [...(axis.total >= 0 ? [TOTAL] : []), ...places.map((place) => axis.codes[place])];
    actions.ask({ ...changed(state, { ...asked, codes, groups: {} }), sort: null, marked: [] });
  };
  const other = state.view === "map" ? "table" : "map";
  return el(
    "div",
    { class: "row marked", role: "group", "aria-label": t("marked") },
    el("p", {}, el("strong", {}, t("marked.areas", { n: names.length })), " ", listed([...names.slice(0, NAMED), ...more])),
    button(t("marked.only"), only, { class: "small", data: { key: "marked-only" } }),
    button(t(`marked.${other}`), () => actions.show({ view: other }), { class: "small", data: { key: "marked-other" } }),
    button(t("marked.clear"), () => actions.show({ marked: [] }), { class: "small", data: { key: "marked-clear" } }),
  );
}
