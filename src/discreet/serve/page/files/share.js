// Ways to take the table elsewhere: a link, a short link that outlives the service, and code for three languages.

import * as api from "./api.js";
import { open } from "./dialog.js";
import { button, el, replace, signButton } from "./dom.js";
import { t } from "./language.js";
import { fragmentOf, layoutOf } from "./link.js";
import { citationOf, title } from "./names.js";

/** The button that opens the dialog. */
export function shareView(state, actions) {
  return button(t("share"), () => dialogOf(state, actions), { data: { key: "share" } });
}

function dialogOf(state, actions) {
  const dialog = el("dialog", { class: "sheet", "aria-labelledby": "share-title" });
  const code = el("div", { class: "examples" }, el("p", { class: "quiet" }, t("loading")));
  actions.trying(api.examples(state.answer.query)).then((found) =>
    replace(code, ...Object.entries(found ?? {}).map(([name, text]) => snippet(name, text, name, actions))),
  );
  const more = `api?${new URLSearchParams({ query: JSON.stringify(state.answer.query), lang: state.lang })}`;
  const permanent = el("div", {}, keepButton(state, actions, (link) => replace(permanent, kept(link))));
  const kept = (link) => snippet(t("share.permanent"), link, "permanent", actions);
  const close = () => dialog.close();
  dialog.append(
    el("header", { class: "sheet-head" }, el("h2", { id: "share-title" }, t("share")), signButton("✕", t("close"), close, { data: { key: "share-away" } })),
    snippet(t("share.link"), location.href.split("#")[0].split("?")[0] + fragmentOf(state), "link", actions),
    permanent,
    snippet(t("share.cite"), citationOf(state), "cite", actions),
    code,
    el("p", {}, el("a", { href: more, target: "_blank", rel: "noopener", data: { key: "api-page" } }, t("share.api"))),
    el(
      "div",
      { class: "foot" },
      button(t("close"), close, { class: "primary", data: { key: "share-close" } }),
    ),
  );
  open(dialog, "share");
}

function keepButton(state, actions, done) {
  const keep = async (event) => {
    event.currentTarget.disabled = true; // one press, one link
    const saved = await actions.trying(api.save(state.answer.query, layoutOf(state)));
    event.target.disabled = false;
    if (!saved) return;
    const link = new URL(saved.link.replace(/^\//, ""), document.baseURI).href;
    done(link);
    actions.addLink(link, title(state.world.catalogue, state.answer.query));
    actions.announce(t("share.kept"));
    document.querySelector('[data-key="copy-permanent"]')?.focus();
  };
  return el(
    "p",
    { class: "row" },
    button(t("share.keep"), keep, { data: { key: "keep" } }),
    el("small", { class: "quiet" }, t("share.keep.hint")),
  );
}

function snippet(caption, text, key, actions) {
  const id = `snippet-${key.replace(/\W/g, "")}`;
  const code = el("code", {}, text);
  const press = async (event) => {
    const pressed = event.currentTarget;
    const done = await copied(text, code);
    pressed.textContent = t(done ? "copied" : "copy");
    actions.announce(t(done ? "copied" : "copy.marked"));
  };
  return el(
    "div",
    { class: "snippet" },
    el(
      "div",
      { class: "row" },
      el("strong", { id }, caption),
      button(t("copy"), press, { class: "small", "aria-describedby": id, data: { key: `copy-${key}` } }),
    ),
    el("pre", { tabindex: "0", role: "region", "aria-labelledby": id, data: { snippet: key } }, code),
  );
}

/** Copy a text. Pages that came without TLS have no clipboard of their own: there the text is marked and copied so. */
async function copied(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return document.execCommand("copy");
  }
}
