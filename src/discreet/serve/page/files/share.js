// Ways to take the table elsewhere: a link, a short link that outlives the service, and code for three languages.

import * as api from "./api.js";
import { button, el, replace } from "./dom.js";
import { open } from "./codes.js";
import { t } from "./language.js";
import { fragmentOf, layoutOf } from "./link.js";

const LONGEST = 4000; // characters of an address that every program takes

/** The button that opens the dialog. */
export function shareView(state, actions) {
  return button(t("share"), () => dialogOf(state, actions), { data: { key: "share" } });
}

function dialogOf(state, actions) {
  const dialog = el("dialog", { class: "sheet", "aria-labelledby": "share-title" });
  let permanent = "";
  const keep = async () => {
    try {
      const saved = await api.save(state.answer.query, layoutOf(state));
      permanent = new URL(saved.link.replace(/^\//, ""), document.baseURI).href;
    } catch (problem) {
      actions.announce(problem.message || t("unreachable"));
    }
    draw();
  };
  const code = snippets(state.answer.query, new URL("api/v1/table", document.baseURI.split("#")[0]).href);
  const draw = () =>
    replace(
      dialog,
      el("h2", { id: "share-title" }, t("share")),
      snippet(t("share.link"), location.href.split("#")[0].split("?")[0] + fragmentOf(state), "link", actions),
      permanent
        ? snippet(t("share.permanent"), permanent, "permanent", actions)
        : el(
            "p",
            {},
            button(t("share.keep"), keep, { data: { key: "keep" } }),
            el("small", { class: "quiet" }, ` ${t("share.keep.hint")}`),
          ),
      Object.entries(code).map(([name, text]) => snippet(name, text, name, actions)),
      el(
        "div",
        { class: "foot" },
        button(t("close"), () => dialog.close(), { class: "primary", data: { key: "share-close" } }),
      ),
    );
  open(dialog, draw, "share");
}

function snippet(words, text, key, actions) {
  const copy = async (event) => {
    const pressed = event.currentTarget;
    await navigator.clipboard?.writeText(text).catch(() => {});
    pressed.textContent = t("copied");
    actions.announce(t("copied"));
  };
  const id = `snippet-${key.replace(/\W/g, "")}`;
  return el(
    "div",
    { class: "snippet" },
    el(
      "div",
      { class: "row" },
      el("strong", { id }, words),
      button(t("copy"), copy, { class: "small", "aria-describedby": id, data: { key: `copy-${key}` } }),
    ),
    el("pre", { tabindex: "0", role: "region", "aria-labelledby": id, data: { snippet: key } }, el("code", {}, text)),
  );
}

/** The same table from a shell, Python and R: in one line where the question fits into an address. */
export function snippets(query, address) {
  const body = JSON.stringify(query);
  const whole = `${address}?format=csv&query=${encodeURIComponent(body).replace(/'/g, "%27")}`;
  if (whole.length <= LONGEST) {
    return {
      curl: `curl -o table.csv '${whole}'`,
      Python: `import pandas as pd\n\ntable = pd.read_csv("${whole}", dtype=str).astype({"value": "Int64"})`,
      R: `table <- read.csv("${whole}", colClasses = "character")\ntable$value <- as.integer(table$value)`,
    };
  }
  const text = JSON.stringify(body); // a string literal that Python and R read alike
  return {
    curl: `curl -o table.csv -H 'Content-Type: application/json' '${address}?format=csv' \\\n  --data '${body.replace(/'/g, "'\\''")}'`,
    Python: `import io, json\nimport pandas as pd\nimport requests\n\nquery = json.loads(${text})\nanswer = requests.post("${address}?format=csv", json=query)\ntable = pd.read_csv(io.StringIO(answer.text), dtype=str).astype({"value": "Int64"})`,
    R: `library(httr2)\n\nanswer <- request("${address}?format=csv") |>\n  req_body_raw(${text}, "application/json") |>\n  req_perform()\ntable <- read.csv(text = resp_body_string(answer), colClasses = "character")\ntable$value <- as.integer(table$value)`,
  };
}
