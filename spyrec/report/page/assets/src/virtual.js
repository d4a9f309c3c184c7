// Lists of which only the rows in sight are elements: a hundred thousand lines scroll as ten do.

import { freshId, h } from "./dom.js";

const BEYOND = 8;

// `render(element, index)` fills a row; `activate(index)` is told of a click or Enter. Arrows, Page, Home and End move.
export class VirtualList {
  constructor({ label, rowHeight, count, render, activate, className = "", role = "listbox", rowRole = "option" }) {
    Object.assign(this, { rowHeight, count, render, activate, rowRole });
    this.active = -1;
    this.rows = new Map();
    this.spare = [];
    this.stem = freshId("row");
    this.space = h("div", { class: "virtual-space", role: "presentation" });
    this.element = h("div", {
      class: `virtual ${className}`, role, tabindex: "0", "aria-label": label,
      on: { scroll: () => this.draw(), keydown: (event) => this.key(event), click: (event) => this.click(event) },
    }, this.space);
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.resize(count);
  }

  resize(count) {
    this.count = count;
    this.space.style.height = `${count * this.rowHeight}px`;
    if (this.active >= count) this.active = -1;
    this.redraw();
  }

  redraw() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  }

  draw() {
    const top = this.element.scrollTop;
    const height = this.element.clientHeight || 400;
    const first = Math.max(0, Math.floor(top / this.rowHeight) - BEYOND);
    const past = Math.min(this.count, Math.ceil((top + height) / this.rowHeight) + BEYOND);
    for (const [index, row] of this.rows) {
      if (index < first || index >= past) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < past; index += 1) {
      if (this.rows.has(index)) continue;
      const row = h("div", {
        class: "virtual-row", role: this.rowRole, id: `${this.stem}-${index}`, data: { index },
        "aria-setsize": this.rowRole === "option" ? this.count : null, "aria-posinset": this.rowRole === "option" ? index + 1 : null,
        "aria-rowindex": this.rowRole === "row" ? index + 2 : null,
      });
      row.style.top = `${index * this.rowHeight}px`;
      row.style.height = `${this.rowHeight}px`;
      row.classList.toggle("is-active", index === this.active);
      this.render(row, index);
      this.rows.set(index, row);
      this.space.append(row);
    }
    if (this.rows.has(this.active)) this.element.setAttribute("aria-activedescendant", `${this.stem}-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  show(index, how = "nearest") {
    const top = index * this.rowHeight;
    const height = this.element.clientHeight || 400;
    const sight = this.element.scrollTop;
    if (how === "nearest" && top >= sight && top + this.rowHeight <= sight + height) return;
    this.element.scrollTop = how === "center" || top < sight - height || top > sight + 2 * height
      ? top - height / 2 + this.rowHeight
      : top < sight ? top : top + this.rowHeight - height;
    this.draw();
  }

  setActive(index, how) {
    this.rows.get(this.active)?.classList.remove("is-active");
    this.active = index;
    if (index >= 0) {
      this.show(index, how);
      this.rows.get(index)?.classList.add("is-active");
    }
    this.draw();
  }

  click(event) {
    const row = event.target.closest(".virtual-row");
    if (!row) return;
    this.setActive(Number(row.dataset.index));
    this.activate(this.active, event);
  }

  key(event) {
    if (event.target !== this.element || !this.count) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const to = {
      ArrowDown: this.active + 1, ArrowUp: Math.max(0, this.active - 1), PageDown: this.active + page, PageUp: this.active - page,
      Home: 0, End: this.count - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.setActive(Math.max(0, Math.min(this.count - 1, to)));
    } else if ((event.key === "Enter" || event.key === " ") && this.active >= 0) {
      event.preventDefault();
      this.activate(this.active, event);
    }
  }
}
