// The chart or the map as a self-contained file: the styles of its parts are written into them.

const COPIED = ["fill", "stroke", "stroke-width", "font-size", "font-family", "font-weight"];
const SVG = "http://www.w3.org/2000/svg";

/** The drawing that is shown as an SVG file, with its title and its legend beneath; null where none is shown. */
export function pictureOf(figure, title) {
  const drawing = figure?.querySelector("svg");
  if (!drawing) return null;
  const [, , wide, tall] = drawing.getAttribute("viewBox").split(" ").map(Number);
  const legend = [...figure.querySelectorAll(".legend li")];
  const lineTall = 20;
  const whole = document.createElementNS(SVG, "svg");
  const height = tall + 40 + lineTall * legend.length + 16;
  whole.setAttribute("viewBox", `-12 0 ${wide + 24} ${height}`);
  whole.setAttribute("width", wide + 24);
  whole.setAttribute("height", height);
  const { color, backgroundColor } = getComputedStyle(document.getElementById("result"));
  whole.append(part("rect", { x: -12, width: wide + 24, height, fill: backgroundColor }));
  whole.append(written(title, 0, 24, color, 16));
  const moved = part("g", { transform: "translate(0 40)" });
  moved.append(...styled(drawing).childNodes);
  whole.append(moved, ...legend.map((item, k) => legendLine(item, tall + 56 + k * lineTall, color)).flat());
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
    part("rect", { x: 0, y: y - 11, width: 13, height: 13, fill }),
    written(item.textContent, 20, y, color, 12),
  ];
}

/** A copy in which each element has its own colours and letters. */
function styled(drawing) {
  const copy = drawing.cloneNode(true);
  const [before, after] = [drawing, copy].map((one) => one.querySelectorAll("*"));
  before.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of COPIED) after[k].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["tabindex", "role", "class"]) after[k].removeAttribute(name);
  });
  return copy;
}
