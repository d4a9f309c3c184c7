// Three panes: what the user wrote, what the compiler made of it, what came out. A line shows its relatives in all of them.

import { empty, h, replace } from "./dom.js";
import { count, plural } from "./format.js";
import { findOp } from "./model.js";
import { opLink } from "./parts.js";
import { go, state } from "./state.js";
import { tabs } from "./tabs.js";
import { VirtualList } from "./virtual.js";

const PANES = [["source", "Source", "what the model says"], ["compiler", "Compiler", "its forms, pass by pass"], ["product", "Product", "what the device gets"]];
const LINE = 20;

export function provenance(context) {
  const view = new Provenance(context);
  return view;
}

class Provenance {
  constructor({ report, lineage }) {
    Object.assign(this, { report, lineage });
    this.marks = report.texts.map(() => new Map());
    this.found = new Set();
    this.hits = [];
    this.said = h("p", { class: "view-note", role: "status" });
    this.input = h("input", { type: "search", "aria-label": "find in all panes", placeholder: "find in all panes", on: { input: () => this.seek(), keydown: (event) => event.key === "Enter" && this.step(event.shiftKey ? -1 : 1) } });
    this.hitText = h("span", { class: "faint", role: "status" });
    this.panes = PANES.map(([key, title, note]) => new Pane(this, key, title, note));
    const step = (text, title, by) => h("button", { type: "button", class: "icon-button", "aria-label": title, data: { tip: title }, text, on: { click: () => this.step(by) } });
    this.element = h("div", { class: "view is-full" },
      h("div", { class: "view-head" }, h("label", { class: "field" }, this.input), step("↑", "previous match", -1), step("↓", "next match", 1), this.hitText, h("span", { class: "grow" }), this.said),
      report.texts.length ? h("div", { class: "panes" }, this.panes.map((pane) => pane.element))
        : empty("No text is known of this", "A record alone has no files and no graph: open the bundle for its panes.", "spyrec report BUNDLE --run RUN.json -o report.html"));
  }

  update() {
    const { text, line, op } = state();
    const at = Number(text);
    let starts = [];
    const isLine = text !== undefined && this.report.texts[at] && Number(line) < this.report.texts[at].lines.length;
    if (isLine) starts = [[at, Number(line)]];
    else if (findOp(this.report, op) !== null) starts = this.lineage.linesOfOp(findOp(this.report, op));
    this.marks = this.lineage.relatives(starts);
    for (const pane of this.panes) pane.follow(starts);
    this.tell(starts, isLine);
  }

  tell(starts, isLine) {
    if (!starts.length) {
      replace(this.said, "Select a line: what it comes from and what came of it light up in all panes.");
      return;
    }
    const count_ = (kind) => this.marks.reduce((sum, lines) => sum + [...lines.values()].filter((value) => value === kind).length, 0);
    const [text, line] = starts[0];
    const ops = isLine ? this.lineage.opsAround(text, line) : [];
    replace(this.said, isLine ? `Line ${count(line + 1)} of ${this.report.texts[text].name}: ` : `Operation ${state().op}: `,
      `${plural(count_("ancestor"), "line")} above it, ${plural(count_("descendant"), "line")} below`, ops.length ? `, ${plural(ops.length, "operation")} ` : "",
      ops.slice(0, 3).flatMap((id) => [opLink(this.report, id), " "]), ops.length > 3 ? "…" : "");
  }

  seek() {
    const word = this.input.value.trim().toLowerCase();
    this.hits = [];
    if (word) {
      const matching = new Set(this.report.strings.flatMap((text, id) => (text.toLowerCase().includes(word) ? [id] : [])));
      for (const text of this.report.texts) text.lines.forEach((string, line) => matching.has(string) && this.hits.push([text.id, line]));
    }
    this.found = new Set(this.hits.map(([text, line]) => `${text}:${line}`));
    this.at = -1;
    this.hitText.textContent = word ? plural(this.hits.length, "match", "matches") : "";
    for (const pane of this.panes) pane.redraw();
    if (this.hits.length) this.step(1);
  }

  step(by) {
    if (!this.hits.length) return;
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    const [text, line] = this.hits[this.at];
    this.hitText.textContent = `${count(this.at + 1)} of ${count(this.hits.length)}`;
    this.panes.find((pane) => pane.key === this.report.texts[text].pane)?.reveal(text, line);
  }

  choose(text, line) {
    const ops = this.lineage.opsAround(text, line);
    go({ text, line, op: ops.length ? ops[0] : null, tensor: null });
  }
}

class Pane {
  constructor(view, key, title, note) {
    Object.assign(this, { view, key });
    this.texts = view.report.texts.filter((text) => text.pane === key);
    this.shown = this.texts.length ? this.texts[key === "compiler" ? 0 : this.texts.length - 1] : null;
    if (key === "source" && this.texts.length) this.shown = this.texts.find((text) => text.kind === "json") ?? this.texts[0];
    this.note = h("p", { text: note });
    this.list = new VirtualList({
      label: `${title}: lines`, rowHeight: LINE, count: this.shown?.lines.length ?? 0,
      render: (element, line) => this.render(element, line),
      activate: (line) => view.choose(this.shown.id, line),
    });
    const bar = this.texts.length > 1 ? tabs(`${title}: forms`, this.texts.map((text) => ({ key: String(text.id), title: text.name })), (id) => this.show(Number(id)), "pane-tabs") : null;
    this.bar = bar;
    this.element = h("section", { class: "card pane", "aria-label": title, data: { pane: key } },
      h("div", { class: "pane-head" }, h("div", { class: "pane-title" }, h("h2", { text: title }), this.note), bar ? bar.bar : h("p", { class: "faint mono", text: this.shown?.name ?? "" })),
      this.shown ? this.list.element : empty("Nothing here", this.missing(), null));
    if (this.shown) {
      this.widen();
      this.list.element.dataset.text = this.shown.id;
      bar?.select(String(this.shown.id));
    }
  }

  missing() {
    return { source: "The bundle holds no graph and its files no handles.", compiler: "Its graph, compiled again, does not give this bundle, or there is none: the compiler's forms are not known.", product: "There are no files." }[this.key];
  }

  show(id) {
    this.shown = this.view.report.texts[id];
    this.list.element.dataset.text = id;
    this.bar?.select(String(id));
    this.list.active = -1;
    this.list.element.scrollTop = 0;
    this.widen();
    this.list.resize(this.shown.lines.length);
    this.toMarked("center");
  }

  // Rows are as wide as the longest line, so that what is marked stays marked to its end.
  widen() {
    const longest = this.shown.lines.reduce((most, string) => Math.max(most, this.view.report.strings[string].length), 0);
    this.list.space.style.minWidth = `calc(${longest}ch + 80px)`;
  }

  redraw() {
    this.list.redraw();
  }

  reveal(text, line) {
    if (this.shown.id !== text) this.show(text);
    this.list.setActive(line, "center");
    this.list.redraw();
  }

  // Shows a text that has something to do with what is chosen, this one if it has, and the first marked line of it.
  follow(starts) {
    if (!this.shown) return;
    const start = starts.find(([text]) => this.texts.some((item) => item.id === text));
    const marked = (text) => this.view.marks[text.id].size > 0;
    if (start && this.shown.id !== start[0] && (starts.length === 1 || !marked(this.shown))) this.show(start[0]);
    else if (!marked(this.shown) && this.texts.some(marked)) this.show(this.texts.find(marked).id);
    else {
      this.list.redraw();
      this.toMarked("nearest");
    }
    for (const tab of this.bar?.bar.querySelectorAll(".tab") ?? []) {
      const size = this.view.marks[Number(tab.dataset.key)].size;
      tab.classList.toggle("has-marks", size > 0);
    }
  }

  toMarked(how) {
    const lines = [...this.view.marks[this.shown.id].keys()];
    if (!lines.length) return;
    const first = Math.min(...lines);
    const top = this.list.element.scrollTop / LINE;
    const bottom = top + (this.list.element.clientHeight || 400) / LINE - 1;
    if (how === "center" || !lines.some((line) => line >= top && line <= bottom)) this.list.show(first, "center");
  }

  render(element, line) {
    const text = this.shown;
    const mark = this.view.marks[text.id].get(line);
    element.classList.add("line");
    if (mark) element.classList.add(`is-${mark}`);
    if (this.view.found.has(`${text.id}:${line}`)) element.classList.add("is-found");
    if (mark === "self") element.setAttribute("aria-selected", "true");
    const relation = { ancestor: "comes before", descendant: "comes of it", self: "chosen" }[mark];
    element.append(h("span", { class: "line-number", "aria-hidden": "true", text: String(line + 1) }),
      h("span", { class: "line-text", text: this.view.report.strings[text.lines[line]] ?? "" }),
      relation ? h("span", { class: "visually-hidden", text: `, ${relation}` }) : "");
    if (line === text.lines.length - 1 && text.left_out) element.append(h("span", { class: "line-relation", text: `${plural(text.left_out, "more line")} left out` }));
  }
}
