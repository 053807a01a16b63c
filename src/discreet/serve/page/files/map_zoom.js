// Zoom and pan of a drawing by wheel, fingers, pointer, keys and buttons: its view box is moved and scaled.

import { el, signButton } from "./dom.js";
import { t } from "./language.js";

const CLOSEST = 40; // times
const STEP = 1.6;

/** Make drawings of one size zoomable together; returns the buttons, and what brings an area into sight. */
export function zoomable(drawings, { width, height }) {
  const whole = { x: 0, y: 0, width: Number(width), height: Number(height) };
  let box = { ...whole };

  function show() {
    for (const drawing of drawings) {
      drawing.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
      drawing.dataset.zoom = (whole.width / box.width).toFixed(2);
      drawing.classList.toggle("zoomed", box.width < whole.width);
    }
  }

  /** Scale around a point of the drawing, and stay inside. */
  function zoom(factor, x = box.x + box.width / 2, y = box.y + box.height / 2) {
    const size = Math.min(1, Math.max(1 / CLOSEST, box.width / whole.width / factor));
    const [across, down] = [(x - box.x) / box.width, (y - box.y) / box.height];
    box = { ...box, width: whole.width * size, height: whole.height * size };
    moveTo(x - across * box.width, y - down * box.height);
  }

  function moveTo(x, y) {
    box.x = Math.min(Math.max(0, x), whole.width - box.width);
    box.y = Math.min(Math.max(0, y), whole.height - box.height);
    show();
  }

  /** Move as far as an area that has the focus needs it. */
  function reveal(area) {
    if (!area.getBBox || box.width >= whole.width) return;
    const { x, y, width: wide, height: tall } = area.getBBox();
    const into = (from, size, low, room) => Math.min(low, Math.max(from, low + size - room));
    moveTo(into(box.x, wide, x, box.width), into(box.y, tall, y, box.height));
  }

  function listen(drawing) {
    const pointOf = ({ clientX, clientY }) => {
      const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(drawing.getScreenCTM().inverse());
      return [x, y];
    };
    drawing.addEventListener(
      "wheel",
      (event) => {
        const isOut = event.deltaY > 0 && box.width >= whole.width; // the page scrolls on
        if (isOut) return;
        event.preventDefault();
        zoom(Math.exp(-event.deltaY / 400), ...pointOf(event));
      },
      { passive: false },
    );
    drawing.addEventListener("keydown", (event) => {
      if (event.key === "+" || event.key === "=") zoom(STEP);
      else if (event.key === "-") zoom(1 / STEP);
      else if (event.key === "0") zoom(0);
      else return;
      event.preventDefault();
    });
    dragged(drawing, {
      isZoomed: () => box.width < whole.width,
      pan: (dx, dy) => {
        const scale = box.width / drawing.getBoundingClientRect().width;
        moveTo(box.x - dx * scale, box.y - dy * scale);
      },
      pinch: (factor, at) => zoom(factor, ...pointOf(at)),
    });
  }

  drawings.forEach(listen);
  show();
  const press = (sign, caption, factor, key) => signButton(sign, t(caption), () => zoom(factor), { data: { key } });
  const buttons = el(
    "div",
    { class: "zoom" },
    press("+", "map.zoom.in", STEP, "zoom-in"),
    press("−", "map.zoom.out", 1 / STEP, "zoom-out"),
    press("⤢", "map.zoom.whole", 0, "zoom-whole"),
  );
  return { buttons, reveal };
}

/** One pointer moves a drawing that is zoomed, two of them zoom it. */
function dragged(drawing, { isZoomed, pan, pinch }) {
  const down = new Map();
  const apart = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  };
  drawing.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, event);
    drawing.dataset.dragged = "no";
  });
  drawing.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    const isMoved = Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) > 2;
    if (isMoved && (isZoomed() || down.size === 2)) drawing.dataset.dragged = "yes";
    if (down.size === 2) {
      const distance = apart();
      down.set(event.pointerId, event);
      const [a, b] = [...down.values()];
      const middle = { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
      if (distance > 0) pinch(apart() / distance, middle);
      return;
    }
    if (isZoomed()) pan(event.clientX - before.clientX, event.clientY - before.clientY);
    down.set(event.pointerId, event);
  });
  for (const kind of ["pointerup", "pointercancel", "pointerleave"])
    drawing.addEventListener(kind, (event) => down.delete(event.pointerId));
}
