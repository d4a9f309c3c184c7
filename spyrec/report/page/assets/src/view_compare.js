// Two bundles: what each operation costs in both, what lies elsewhere, what is in one alone.

import { empty, h } from "./dom.js";
import { bytes, count, flops, micros, percent, plural } from "./format.js";
import { findOp } from "./model.js";
import { card, cardBody, pill } from "./parts.js";
import { go, state } from "./state.js";
import { Table } from "./table.js";
import { tabs } from "./tabs.js";

export function compare(context) {
  return new Compare(context);
}

class Compare {
  constructor({ report }) {
    this.report = report;
    const { against } = report;
    if (!against) {
      this.element = h("div", { class: "view" }, empty("Nothing to compare with", "Give another bundle, an older one for example: this page then shows both side by side.", "spyrec report BUNDLE --against OTHER -o report.html"));
      this.update = () => {};
      return;
    }
    const changed = against.pairs.filter((pair) => (pair.changed ?? []).length);
    this.keys = [{ key: "operations", title: "Operations", badge: String(changed.length) }, { key: "moved", title: "Moved tensors", badge: String(against.moved.length) }, { key: "only", title: "In one alone", badge: String(against.only.length) }, { key: "facts", title: "All differences", badge: String(against.facts.length) }];
    this.tabs = tabs("two bundles", this.keys, (key) => go({ tab: key === "operations" ? null : key }), "subtabs");
    this.tabs.panel.classList.add("grow", "stack");
    this.element = h("div", { class: "view is-full" }, this.totals(against), h("div", { class: "view-head" }, this.tabs.bar), this.tabs.panel);
    this.made = new Map();
    this.changed = changed;
  }

  totals(against) {
    const { totals, bundle } = this.report;
    const rows = [["predicted time", "us", micros], ["read", "read", bytes], ["written", "written", bytes], ["read by cores", "core_read", bytes], ["lower bound", "bound", bytes], ["scratchpad at its fullest", "lx_peak", bytes], ["arithmetic", "flops", flops], ["executions", "executions", count]];
    const cells = rows.flatMap(([name, key, text]) => {
      const [is, was] = [totals[key], against.totals[key]];
      const tone = is === was || key === "flops" || key === "bound" || key === "lx_peak" ? "" : is < was ? "is-better" : "is-worse";
      const change = is === was ? "the same" : was ? `${is > was ? "+" : "−"}${percent(Math.abs(is - was) / was)}` : "new";
      return [h("span", { text: name }), h("span", { class: "numeric", text: text(was) }), h("span", { class: "numeric", text: text(is) }), h("span", { class: `numeric ${tone}`, text: change })];
    });
    const made = card("Side by side", `${against.path} was, ${bundle.path} is`, cardBody(h("div", { class: "versus" }, h("span", { class: "head-cell" }), h("span", { class: "numeric head-cell", text: against.path }), h("span", { class: "numeric head-cell", text: bundle.path }), h("span", { class: "numeric head-cell", text: "change" }), cells)));
    made.classList.add("is-fixed");
    return made;
  }

  make(tab) {
    const { report, changed } = this;
    const { against } = report;
    const open = (op) => op !== undefined && op !== null && go({ op, tensor: null });
    const delta = (is, was) => is - was;
    const signed = (value, text) => (value ? `${value > 0 ? "+" : "−"}${text(Math.abs(value))}` : "–");
    if (tab === "operations") {
      return this.list("Operations that changed", `${changed.length} of ${plural(against.pairs.length, "pair")}; negative is better`, new Table({
        label: "operations of both bundles", rows: changed.length ? changed : against.pairs, sort: { key: "dus", down: false },
        columns: [
          { key: "op", title: "op", width: "3.5rem", numeric: true, value: (pair) => pair.op },
          { key: "function", title: "function", width: "8rem", value: (pair) => report.ops[pair.op].op },
          { key: "name", title: "writes", width: "minmax(8rem, 2fr)", value: (pair) => report.ops[pair.op].name },
          { key: "was", title: "was", width: "6.5rem", numeric: true, value: (pair) => pair.us ?? 0, text: (pair) => micros(pair.us ?? 0) },
          { key: "is", title: "is", width: "6.5rem", numeric: true, value: (pair) => report.ops[pair.op].us, text: (pair) => micros(report.ops[pair.op].us) },
          { key: "dus", title: "time", width: "7rem", numeric: true, value: (pair) => delta(report.ops[pair.op].us, pair.us ?? 0), text: (pair) => signed(delta(report.ops[pair.op].us, pair.us ?? 0), micros) },
          { key: "dbytes", title: "bytes", width: "7rem", numeric: true, value: (pair) => delta(report.ops[pair.op].moved, (pair.read ?? 0) + (pair.written ?? 0)), text: (pair) => signed(delta(report.ops[pair.op].moved, (pair.read ?? 0) + (pair.written ?? 0)), bytes) },
          { key: "changed", title: "what changed", width: "minmax(9rem, 1.5fr)", value: (pair) => (pair.changed ?? []).join(", "), text: (pair) => (pair.changed ?? []).join(", ") || "nothing" },
        ],
        activate: (pair) => open(pair.op), chosen: (pair) => pair.op === findOp(report, state().op),
      }));
    }
    if (tab === "moved") {
      return against.moved.length ? this.list("Tensors that lie elsewhere", null, new Table({
        label: "tensors that lie elsewhere", rows: against.moved,
        columns: [{ key: "name", title: "tensor", value: (move) => move.name }, { key: "was", title: "was in", value: (move) => move.was }, { key: "is", title: "is in", value: (move) => move.is }],
        activate: (move) => move.tensor !== undefined && go({ tensor: move.tensor, op: null }),
      })) : empty("Nothing moved", "Every tensor that both bundles know lies in the same place.", null);
    }
    if (tab === "only") {
      return against.only.length ? this.list("Operations of one bundle alone", null, new Table({
        label: "operations of one bundle alone", rows: against.only,
        columns: [
          { key: "side", title: "in", width: "10rem", value: (item) => (item.side === "this" ? report.bundle.path : against.path) },
          { key: "op", title: "op", width: "4rem", numeric: true, value: (item) => item.op }, { key: "name", title: "writes", value: (item) => item.name },
          { key: "us", title: "time", width: "8rem", numeric: true, value: (item) => item.us ?? 0, text: (item) => micros(item.us ?? 0) },
          { key: "bytes", title: "moves", width: "8rem", numeric: true, value: (item) => (item.read ?? 0) + (item.written ?? 0), text: (item) => bytes((item.read ?? 0) + (item.written ?? 0)) },
        ],
        activate: (item) => item.side === "this" && open(item.op),
      })) : empty("Both have the same operations", "Each has its partner in the other bundle.", null);
    }
    return against.facts.length ? this.list("All differences", "as spyrec diff --semantic tells them", new Table({
      label: "differences", rows: against.facts,
      columns: [{ key: "topic", title: "topic", width: "8rem", value: (fact) => fact.topic }, { key: "about", title: "about", width: "minmax(8rem, 1fr)", value: (fact) => fact.about }, { key: "text", title: "what", width: "minmax(14rem, 3fr)", value: (fact) => fact.text }],
      activate: (fact) => open(fact.op),
    })) : h("div", {}, pill("no difference", "is-good"));
  }

  list(title, note, table) {
    const made = card(title, note, table.element);
    made.classList.add("grow", "fill-table");
    made.table = table;
    return made;
  }

  update() {
    const tab = this.keys.some((item) => item.key === state().tab) ? state().tab : "operations";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, this.make(tab));
    this.tabs.panel.replaceChildren(this.made.get(tab));
    this.made.get(tab).table?.refresh();
  }
}
