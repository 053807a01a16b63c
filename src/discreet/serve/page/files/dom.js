// Elements from plain descriptions. Attributes are set one by one and styles through the object model, because the
// page's policy allows no markup with styles or scripts in it.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `on` holds listeners, `style` styles, `data` data attributes; false and null leave a thing out. */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) set(node, name, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function set(node, name, value) {
  if (value === false || value === null || value === undefined) return;
  if (name === "on") for (const [event, heard] of Object.entries(value)) node.addEventListener(event, heard);
  else if (name === "style") Object.assign(node.style, value);
  else if (name === "data") Object.assign(node.dataset, value);
  else if (["value", "checked", "disabled", "selected", "indeterminate"].includes(name)) node[name] = value;
  else node.setAttribute(name, value === true ? "" : value);
}

/** Put new children into a place and leave the focus on the control that had it, known by its `data-key`. */
export function replace(place, ...children) {
  const held = place.contains(document.activeElement) ? document.activeElement : null;
  const key = held?.dataset.key;
  const caret = held && "selectionStart" in held ? [held.selectionStart, held.selectionEnd] : null;
  const open = [...place.querySelectorAll("details[open][data-key]")].map((one) => one.dataset.key);
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const one of place.querySelectorAll("details[data-key]")) if (open.includes(one.dataset.key)) one.open = true;
  if (key) focus(place, key, caret);
}

function focus(place, key, caret) {
  const found = byKey(place, key);
  if (!found) return;
  found.focus({ preventScroll: true });
  if (caret && caret[0] !== null && found.setSelectionRange) found.setSelectionRange(...caret);
}

/** Do something after what has changed is on the screen; returns what cancels it. */
export function afterDrawing(work, milliseconds = 0) {
  let timer = 0;
  const frame = requestAnimationFrame(() => {
    timer = setTimeout(work, milliseconds);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}

/** The control of a key. */
export function byKey(place, key) {
  return place.querySelector(`[data-key="${CSS.escape(key)}"]`);
}

/** A button with a text. */
export function button(caption, press, properties = {}) {
  return el("button", { type: "button", ...properties, on: { click: press, ...properties.on } }, caption);
}

/** A button with a sign; its text is for screen readers and for the tooltip. */
export function signButton(sign, caption, press, properties = {}) {
  return button(el("span", { "aria-hidden": "true" }, sign), press, {
    class: "sign",
    "aria-label": caption,
    title: caption,
    ...properties,
  });
}

/** A labelled list to choose one from: pairs of value and text. */
export function choice(caption, pairs, chosen, pick, properties = {}) {
  const options = pairs.map(([value, text]) => el("option", { value, selected: value === chosen }, text));
  const list = el("select", { ...properties, on: { change: (event) => pick(event.target.value) } }, options);
  list.value = chosen;
  return el("label", { class: "field" }, el("span", {}, caption), list);
}

/** Give the reader a file. */
export function handOver(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
