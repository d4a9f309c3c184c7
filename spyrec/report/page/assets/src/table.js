// A table of any length: a head that sorts, rows that are drawn when they are seen.

import { h, replace } from "./dom.js";
import { VirtualList } from "./virtual.js";

const ROW = 28;

// `columns`: [{key, title, width, value(row), text(row), numeric?, bar?(row) -> share, colour?(row), tip?}].
export class Table {
  constructor({ label, columns, rows, activate, sort = null, chosen = () => false }) {
    Object.assign(this, { columns, all: rows, activate, chosen });
    this.order = sort;
    this.shown = rows;
    this.heads = columns.map((column, place) =>
      h("div", { role: "columnheader", class: column.numeric ? "cell numeric" : "cell", "aria-sort": "none" },
        h("button", { type: "button", class: "sort", data: column.tip ? { tip: column.tip } : {}, on: { click: () => this.sortBy(place) } },
          h("span", { text: column.title }), h("span", { class: "sort-mark", "aria-hidden": "true" }))));
    this.head = h("div", { class: "table-head", role: "row", "aria-rowindex": "1" }, this.heads);
    this.list = new VirtualList({
      label, rowHeight: ROW, count: rows.length, role: "rowgroup", rowRole: "row", className: "table-body",
      render: (element, index) => this.row(element, this.shown[index]),
      activate: (index) => this.activate(this.shown[index]),
    });
    this.element = h("div", { class: "table", role: "grid", "aria-label": label, "aria-rowcount": rows.length + 1 }, this.head, this.list.element);
    const template = columns.map((column) => column.width ?? "minmax(6rem, 1fr)").join(" ");
    this.element.style.setProperty("--columns", template);
    this.settle();
  }

  setRows(rows) {
    this.all = rows;
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this.settle();
  }

  sortBy(place) {
    const key = this.columns[place].key;
    const down = this.order?.key === key ? !this.order.down : Boolean(this.columns[place].numeric);
    this.order = { key, down };
    this.settle();
  }

  settle() {
    const column = this.order && this.columns.find((item) => item.key === this.order.key);
    this.shown = column ? [...this.all].sort((one, other) => compare(column.value(one), column.value(other), this.order.down)) : this.all;
    this.columns.forEach((item, place) => {
      const isOrder = column === item;
      this.heads[place].setAttribute("aria-sort", isOrder ? (this.order.down ? "descending" : "ascending") : "none");
      this.heads[place].querySelector(".sort-mark").textContent = isOrder ? (this.order.down ? "▼" : "▲") : "";
    });
    this.list.resize(this.shown.length);
  }

  refresh() {
    this.list.redraw();
  }

  reveal(test) {
    const at = this.shown.findIndex(test);
    if (at >= 0) this.list.setActive(at);
  }

  row(element, row) {
    element.classList.toggle("is-chosen", this.chosen(row));
    if (this.chosen(row)) element.setAttribute("aria-selected", "true");
    replace(element, this.columns.map((column) => {
      const text = column.text ? column.text(row) : String(column.value(row) ?? "–");
      const cell = h("div", { role: "gridcell", class: column.numeric ? "cell numeric" : "cell", title: text.length > 24 ? text : null });
      if (column.bar) {
        const bar = h("span", { class: "cell-bar", "aria-hidden": "true" });
        bar.style.width = `${Math.round(100 * Math.max(0, Math.min(1, column.bar(row) || 0)))}%`;
        cell.append(bar);
      }
      if (column.colour) {
        const dot = h("span", { class: "dot", "aria-hidden": "true" });
        dot.style.backgroundColor = column.colour(row);
        cell.append(dot);
      }
      cell.append(h("span", { class: "cell-text", text }));
      return cell;
    }));
  }
}

function compare(one, other, down) {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  const order = typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
  return down ? -order : order;
}
