// Codes with their labels, requested once; a list that failed to load is requested again the next time.

import * as api from "./api.js";

/** The codelists that have been requested. `arrived` is called when one comes that a label was missed from. */
export function makeCodelists(arrived) {
  const asked = new Map();
  const labels = new Map(); // variable -> code -> label

  function once(name, ask) {
    if (!asked.has(name)) {
      asked.set(name, ask());
      asked.get(name).catch(() => asked.delete(name));
    }
    return asked.get(name);
  }

  const breakdown = (name) => once(`breakdown ${name}`, () => api.breakdown(name));
  const variable = (name) => once(`variable ${name}`, () => api.variable(name));

  async function learn(name) {
    labels.set(name, new Map());
    try {
      const { codes, labels: texts } = await variable(name);
      labels.set(name, new Map(codes.map((code, place) => [code, texts[place]])));
      arrived();
    } catch {
      labels.delete(name); // the code is shown until its label is available
    }
  }

  /** The label of a variable's code, or the code itself while its label is on the way. */
  function label(name, code) {
    if (!labels.has(name)) learn(name);
    return labels.get(name)?.get(code) ?? code;
  }

  return { breakdown, variable, label };
}
