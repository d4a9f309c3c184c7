// A drawing of many things: a canvas that pans and zooms, and that pointer, keyboard and screen reader all walk.
//
// The drawing is given as `things`: rectangles in its own coordinates, each with what to say of it. What draws them is the
// chart's; where they are, which is meant and what is said of it is done here, the same for every chart.

import { announcer, h } from "./dom.js";
import { hideTooltip, showTooltip } from "./tooltip.js";

const MOST_ZOOM = 400;

export class Stage {
  // `draw(context, stage)`; `things`: [{x, y, w, h, ...}], last one on top; `describe(thing)` -> {title, lines};
  // `activate(thing)`; `zoom`: "xy", "x" or ""; `margin`: pixels around that do not move {left, top, right, bottom}.
  constructor({ label, height, draw, describe, activate, zoom = "xy", margin = {}, find = null, minimum = 6, background = null }) {
    Object.assign(this, { paint: draw, describe, activate, zoom, find, minimum, background });
    this.margin = { left: 0, top: 0, right: 0, bottom: 0, ...margin };
    this.things = [];
    this.content = { width: 1, height: 1 };
    this.view = { x: 0, y: 0, kx: 1, ky: 1 };
    this.focus = null;
    this.hover = null;
    this.canvas = h("canvas", { class: "stage-canvas", "aria-hidden": "true" });
    this.said = announcer();
    this.surface = h("div", {
      class: "stage-surface", tabindex: "0", role: "application", "aria-roledescription": "chart",
      "aria-label": `${label}. Arrow keys walk, Enter selects${zoom ? ", plus and minus zoom, 0 shows all" : ""}.`,
    }, this.canvas);
    if (height) this.surface.style.height = `${height}px`;
    this.bar = zoom ? this.buttons() : null;
    this.element = h("div", { class: "stage" }, this.surface, this.bar, this.said);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.surface);
    window.addEventListener("spyrec-redraw", () => this.draw());
  }

  setThings(things, content) {
    this.things = things;
    this.content = content;
    this.focus = null;
    this.hover = null;
    this.fit();
  }

  buttons() {
    const button = (text, title, act) => h("button", { type: "button", class: "icon-button", "aria-label": title, data: { tip: title }, text, on: { click: act } });
    return h("div", { class: "stage-buttons" },
      button("+", "zoom in", () => this.zoomBy(1.5)), button("−", "zoom out", () => this.zoomBy(1 / 1.5)), button("fit", "show all", () => this.fit()));
  }

  resize() {
    const box = this.surface.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const scale = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(box.height * scale);
    this.canvas.style.width = `${box.width}px`;
    this.canvas.style.height = `${box.height}px`;
    if (this.isFit !== false) this.fit();
    else this.draw();
  }

  fit() {
    if (!this.width) return;
    const { left, top, right, bottom } = this.margin;
    const kx = (this.width - left - right) / this.content.width;
    const ky = (this.height - top - bottom) / this.content.height;
    if (this.zoom === "xy") {
      const scale = Math.min(kx, ky, 1.25);
      this.view = { kx: scale, ky: scale, x: 0, y: 0 };
      this.view.x = -((this.width - left - right) / scale - this.content.width) / 2;
      this.view.y = -Math.max(0, ((this.height - top - bottom) / scale - this.content.height) / 2);
    } else this.view = { x: 0, y: 0, kx, ky };
    this.least = this.view.kx;
    this.isFit = true;
    this.draw();
  }

  sx(x) {
    return this.margin.left + (x - this.view.x) * this.view.kx;
  }

  sy(y) {
    return this.margin.top + (y - this.view.y) * this.view.ky;
  }

  wx(screen) {
    return (screen - this.margin.left) / this.view.kx + this.view.x;
  }

  wy(screen) {
    return (screen - this.margin.top) / this.view.ky + this.view.y;
  }

  isSeen(thing) {
    return this.sx(thing.x + thing.w) >= this.margin.left && this.sx(thing.x) <= this.width - this.margin.right &&
      this.sy(thing.y + thing.h) >= this.margin.top && this.sy(thing.y) <= this.height - this.margin.bottom;
  }

  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const [atX, atY] = [this.wx(x), this.wy(y)];
    const scale = Math.max(this.least * 0.5, Math.min(this.least * MOST_ZOOM, this.view.kx * factor));
    const real = scale / this.view.kx;
    this.view.kx = scale;
    if (this.zoom === "xy") this.view.ky *= real;
    this.view.x = atX - (x - this.margin.left) / this.view.kx;
    if (this.zoom === "xy") this.view.y = atY - (y - this.margin.top) / this.view.ky;
    this.isFit = false;
    this.clamp();
    this.draw();
  }

  clamp() {
    if (this.zoom !== "x") return;
    const seen = (this.width - this.margin.left - this.margin.right) / this.view.kx;
    if (seen >= this.content.width) Object.assign(this.view, { x: 0, kx: this.least });
    else this.view.x = Math.max(0, Math.min(this.content.width - seen, this.view.x));
  }

  // Moves so that a thing is in sight, and no more than that.
  reveal(thing, scale = null) {
    if (!this.width || !this.zoom) return;
    if (scale && this.view.kx < scale) {
      this.view.kx = scale;
      if (this.zoom === "xy") this.view.ky = scale;
      this.isFit = false;
    } else if (this.isSeen(thing) && this.sx(thing.x) >= this.margin.left && this.sy(thing.y) >= this.margin.top) return;
    this.isFit = false;
    this.view.x = thing.x + thing.w / 2 - (this.width - this.margin.left - this.margin.right) / this.view.kx / 2;
    if (this.zoom === "xy") this.view.y = thing.y + thing.h / 2 - (this.height - this.margin.top - this.margin.bottom) / this.view.ky / 2;
    this.clamp();
    this.draw();
  }

  thingAt(x, y) {
    if (x < this.margin.left || x > this.width - this.margin.right || y < this.margin.top || y > this.height - this.margin.bottom) {
      if (!this.find) return null;
    }
    if (this.find) return this.find(this.wx(x), this.wy(y), x, y);
    for (let place = this.things.length - 1; place >= 0; place -= 1) {
      const thing = this.things[place];
      const spareX = Math.max(0, (this.minimum - thing.w * this.view.kx) / 2);
      const spareY = Math.max(0, (this.minimum - thing.h * this.view.ky) / 2);
      if (x >= this.sx(thing.x) - spareX && x <= this.sx(thing.x + thing.w) + spareX && y >= this.sy(thing.y) - spareY && y <= this.sy(thing.y + thing.h) + spareY) return thing;
    }
    return null;
  }

  listen() {
    let drag = null;
    const at = (event) => {
      const box = this.surface.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.surface.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (drag) {
        if (Math.hypot(x - drag.x, y - drag.y) > 4) drag.moved = true;
        if (drag.moved && this.zoom) {
          this.view.x = drag.view.x - (x - drag.x) / this.view.kx;
          if (this.zoom === "xy") this.view.y = drag.view.y - (y - drag.y) / this.view.ky;
          this.isFit = false;
          this.clamp();
          this.draw();
        }
        return;
      }
      const thing = this.thingAt(x, y);
      if (thing !== this.hover) {
        this.hover = thing;
        this.surface.style.cursor = thing ? "pointer" : "";
        this.draw();
      }
      if (thing) showTooltip(this.describe(thing), event.clientX, event.clientY, this.surface);
      else hideTooltip();
    });
    this.surface.addEventListener("pointerleave", () => {
      this.hover = null;
      hideTooltip();
      this.draw();
    });
    this.surface.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      drag = { x, y, view: { ...this.view }, moved: false };
      this.surface.setPointerCapture(event.pointerId);
    });
    this.surface.addEventListener("pointerup", (event) => {
      const [x, y] = at(event);
      const wasClick = drag && !drag.moved;
      drag = null;
      const thing = wasClick ? this.thingAt(x, y) : null;
      if (thing) {
        this.focus = thing;
        this.activate(thing);
        this.draw();
      }
    });
    this.surface.addEventListener("pointercancel", () => { drag = null; });
    this.surface.addEventListener("wheel", (event) => {
      if (!this.zoom || !(event.ctrlKey || event.metaKey || this.surface === document.activeElement)) return;
      event.preventDefault();
      const [x, y] = at(event);
      this.zoomBy(Math.exp(-event.deltaY / 400), x, y);
    }, { passive: false });
    this.surface.addEventListener("keydown", (event) => this.key(event));
    this.surface.addEventListener("focus", () => this.draw());
    this.surface.addEventListener("blur", () => {
      hideTooltip();
      this.draw();
    });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (direction) this.setFocus(this.focus ? this.next(direction) : this.things[0]);
    else if (event.key === "Home") this.setFocus(this.things[0]);
    else if (event.key === "End") this.setFocus(this.things[this.things.length - 1]);
    else if ((event.key === "Enter" || event.key === " ") && this.focus) this.activate(this.focus);
    else if (event.key === "+" || event.key === "=") this.zoom && this.zoomBy(1.5);
    else if (event.key === "-") this.zoom && this.zoomBy(1 / 1.5);
    else if (event.key === "0") this.zoom && this.fit();
    else return;
    event.preventDefault();
  }

  // The nearest thing in a direction; what lies straight ahead counts as nearer.
  next([dx, dy]) {
    const middle = (thing) => [thing.x + thing.w / 2, thing.y + thing.h / 2];
    const [x, y] = middle(this.focus);
    let best = this.focus;
    let least = Infinity;
    for (const thing of this.things) {
      if (thing === this.focus) continue;
      const [otherX, otherY] = middle(thing);
      const along = ((otherX - x) * dx) * this.view.kx + ((otherY - y) * dy) * this.view.ky;
      const aside = Math.abs((otherX - x) * dy) * this.view.kx + Math.abs((otherY - y) * dx) * this.view.ky;
      if (along <= 1e-9) continue;
      const distance = along + 3 * aside;
      if (distance < least) [best, least] = [thing, distance];
    }
    return best;
  }

  setFocus(thing) {
    if (!thing) return;
    this.focus = thing;
    this.reveal(thing);
    this.draw();
    const content = this.describe(thing);
    this.said.textContent = [content.title, ...content.lines.map((line) => (Array.isArray(line) ? line.join(" ") : line))].join("; ");
    const box = this.surface.getBoundingClientRect();
    const x = Math.max(0, Math.min(this.width, this.sx(thing.x + thing.w / 2)));
    const y = Math.max(0, Math.min(this.height, this.sy(thing.y + thing.h)));
    showTooltip(content, box.left + x, box.top + y, this.surface);
  }

  draw() {
    if (this.pending || !this.width) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      if (!this.surface.isConnected) return;
      const context = this.canvas.getContext("2d");
      const scale = window.devicePixelRatio || 1;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      context.textBaseline = "middle";
      this.paint(context, this, themeColours());
      const isFocused = document.activeElement === this.surface && this.focus;
      if (isFocused) this.outline(context, this.focus, themeColours().focus);
    });
  }

  outline(context, thing, colour) {
    context.lineWidth = 3;
    context.strokeStyle = colour;
    context.strokeRect(this.sx(thing.x) - 2, this.sy(thing.y) - 2, thing.w * this.view.kx + 4, thing.h * this.view.ky + 4);
  }

  clip(context) {
    context.save();
    context.beginPath();
    context.rect(this.margin.left, this.margin.top, this.width - this.margin.left - this.margin.right, this.height - this.margin.top - this.margin.bottom);
    context.clip();
  }
}

let colours = null;

// The theme's colours, as the style sheet has them.
export function themeColours() {
  if (colours) return colours;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  colours = Object.fromEntries(["ink", "ink-soft", "ink-faint", "line", "line-strong", "surface", "surface-2", "page", "accent", "focus", "bad", "good"]
    .map((name) => [name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase()), read(name)]));
  colours.font = style.getPropertyValue("--font").trim();
  colours.mono = style.getPropertyValue("--mono").trim();
  return colours;
}

export function forgetColours() {
  colours = null;
}

export function font(pixels, weight = 400) {
  return `${weight} ${pixels}px ${themeColours().font}`;
}

export function mono(pixels) {
  return `${pixels}px ${themeColours().mono}`;
}

// Text that fits into a width, cut with an ellipsis.
export function cut(context, text, width) {
  if (width <= 0) return "";
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}

// Places for an axis of bytes: multiples of a power of two.
export function byteTicks(high, most) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, high / Math.max(1, most))));
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, place) => place * step);
}

// Round places for an axis: at most `most` of them between two values.
export function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const places = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) places.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return places;
}
