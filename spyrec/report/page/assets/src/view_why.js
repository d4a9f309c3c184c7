// Why: each choice of the planner, what lost against it, and by how much.

import { kind } from "./colours.js";
import { empty, h } from "./dom.js";
import { bytes, micros, plural } from "./format.js";
import { findOp, findTensor } from "./model.js";
import { card, opLink, tensorLink } from "./parts.js";
import { reason } from "./inspector.js";
import { replace } from "./dom.js";
import { go, state } from "./state.js";
import { Table } from "./table.js";

export function why(context) {
  return new Why(context);
}

class Why {
  constructor({ report }) {
    this.report = report;
    if (!report.decisions.length) {
      this.element = h("div", { class: "view" }, empty("No decisions are known", "The manifest of a bundle holds them: a foreign bundle has none, and older ones may not.", "spyrec compile GRAPH.json -o BUNDLE"));
      this.update = () => {};
      return;
    }
    const counts = new Map();
    for (const item of report.decisions) counts.set(item.kind, (counts.get(item.kind) ?? 0) + 1);
    this.order = [...counts.keys()];
    this.filters = h("div", { class: "filters", role: "group", "aria-label": "kinds of decisions" }, ["", ...this.order].map((key) =>
      h("button", { type: "button", class: "filter", data: { key }, "aria-pressed": "false", on: { click: () => go({ kind: key || null }) } },
        h("span", { text: key || "all" }), h("span", { class: "badge", text: String(key ? counts.get(key) : report.decisions.length) }))));
    this.input = h("input", { type: "search", placeholder: "name or reason", "aria-label": "filter decisions", on: { input: () => this.settle() } });
    this.detail = h("div", { class: "is-fixed" });
    this.table = new Table({
      label: "decisions of the planner", rows: report.decisions, sort: null,
      columns: [
        { key: "kind", title: "decision", width: "6.5rem", value: (item) => item.kind, colour: (item) => kind(this.order.indexOf(item.kind)) },
        { key: "subject", title: "about", width: "minmax(7rem, 1.2fr)", value: (item) => item.subject },
        { key: "bytes", title: "saves", width: "5rem", numeric: true, value: (item) => item.saved_bytes, text: (item) => (item.saved_bytes ? bytes(item.saved_bytes) : "–"), tip: "device memory traffic by which the alternative is worse; negative: the decision costs more of it" },
        { key: "us", title: "time", width: "5.5rem", numeric: true, tip: "simulated time by which the alternative is worse", value: (item) => item.saved_us, text: (item) => (item.saved_us ? micros(item.saved_us) : "–") },
        { key: "ways", title: "ways", width: "3.5rem", numeric: true, value: (item) => item.considered.length, text: (item) => (item.considered.length ? String(item.considered.length) : "–"), tip: "ways that the planner weighed; select the decision to see them" },
        { key: "reason", title: "why", width: "minmax(8rem, 3fr)", value: (item) => item.reason },
        { key: "alternative", title: "instead of", width: "minmax(6rem, 1fr)", value: (item) => item.alternative ?? item.considered.find((way) => !way.chosen)?.text ?? "–" },
      ],
      activate: (item) => go({ decision: item.id, ...(item.tensor !== undefined ? { tensor: item.tensor, op: null } : { op: item.ops[0] ?? null, tensor: null }) }),
      chosen: (item) => this.isAbout(item),
    });
    const list = card("Decisions", "bytes and times are of the whole model", this.table.element);
    list.classList.add("grow", "fill-table");
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.filters, h("span", { class: "grow" }), h("label", { class: "field" }, this.input)), list, this.detail);
  }

  isAbout(item) {
    if (state().decision !== undefined) return String(item.id) === state().decision;
    const [tensor, op] = [findTensor(this.report, state().tensor), findOp(this.report, state().op)];
    return tensor !== null ? item.tensor === tensor : op !== null && item.ops.includes(op);
  }

  settle() {
    const word = this.input.value.trim().toLowerCase();
    const key = state().kind ?? "";
    const rows = this.report.decisions.filter((item) => (!key || item.kind === key) && (!word || `${item.subject} ${item.reason} ${item.alternative ?? ""}`.toLowerCase().includes(word)));
    this.table.setRows(rows);
    for (const filter of this.filters.children) filter.setAttribute("aria-pressed", String(filter.dataset.key === key));
  }

  update() {
    this.settle();
    const chosen = this.table.shown.filter((item) => this.isAbout(item));
    if (chosen.length) this.table.reveal((item) => item === chosen[0]);
    replace(this.detail, chosen.length ? card(plural(chosen.length, "decision chosen", "decisions chosen"), null, h("div", { class: "card-body stack is-scroll" }, chosen.slice(0, 5).map((item) => h("div", { class: "stack-small" }, reason(item, true),
      h("div", { class: "row" }, item.tensor !== undefined ? tensorLink(this.report, item.tensor) : null, item.ops.slice(0, 4).map((id) => opLink(this.report, id))))))) : null);
  }
}
