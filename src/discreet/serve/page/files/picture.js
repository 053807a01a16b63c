// The map as a self-contained file: the styles of its parts are written into them.

const COPIED = ["fill", "stroke", "stroke-width", "font-size", "font-family", "font-weight"];
const SVG = "http://www.w3.org/2000/svg";

const WIDE = 720; // of one map
const GAP = 24;
const LINE = 20; // of the legend

/** The maps that are shown as one SVG file, each below what it shows, with the legend beneath; null where none is. */
export function pictureOf(figure, title) {
  const drawings = [...(figure?.querySelectorAll(".map-frame > svg") ?? [])];
  if (!drawings.length) return null;
  const captions = [...figure.querySelectorAll(".map-heading")].map((one) => one.textContent);
  const legend = [...figure.querySelectorAll(".legend li")];
  const [, , wide, tall] = drawings[0].getAttribute("viewBox").split(" ").map(Number);
  const high = (WIDE * tall) / wide;
  const size = { width: drawings.length * (WIDE + GAP) + GAP, height: high + 80 + LINE * legend.length };
  const whole = part("svg", { viewBox: `0 0 ${size.width} ${size.height}`, ...size });
  const { color, backgroundColor } = getComputedStyle(document.getElementById("result"));
  whole.append(part("rect", { ...size, fill: backgroundColor }), written(title, GAP, 26, color, 16));
  drawings.forEach((drawing, n) => {
    const x = GAP + n * (WIDE + GAP);
    const map = part("svg", { x, y: 60, width: WIDE, height: high, viewBox: drawing.getAttribute("viewBox") });
    map.append(...styled(drawing).childNodes);
    whole.append(written(captions[n], x, 50, color, 13), map);
  });
  whole.append(...legend.flatMap((item, k) => legendLine(item, high + 84 + k * LINE, color)));
  return new Blob([new XMLSerializer().serializeToString(whole)], { type: "image/svg+xml" });
}

function part(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function written(caption, x, y, fill, size) {
  const text = part("text", { x, y, fill, "font-size": size, "font-family": "sans-serif" });
  text.textContent = caption;
  return text;
}

function legendLine(item, y, color) {
  const sign = item.querySelector("i");
  const fill = sign.classList.contains("hatched") ? "url(#hatch)" : getComputedStyle(sign).backgroundColor;
  return [
    part("rect", { x: GAP, y: y - 11, width: 13, height: 13, fill }),
    written(item.textContent, GAP + 20, y, color, 12),
  ];
}

/** A copy in which each element has its own colours and letters. */
function styled(drawing) {
  const copy = drawing.cloneNode(true);
  const [before, after] = [drawing, copy].map((one) => one.querySelectorAll("*"));
  before.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of COPIED) after[k].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["tabindex", "role", "class", "data-key", "data-area", "aria-pressed"]) after[k].removeAttribute(name);
  });
  return copy;
}
