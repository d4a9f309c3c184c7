// The page: reads the report, builds the frame, and shows the view that the address names.

import { h, svg } from "./dom.js";
import { microsWithin, plural } from "./format.js";
import { Inspector } from "./inspector.js";
import { Lineage } from "./lineage.js";
import { readReport } from "./model.js";
import { Schedule } from "./schedule.js";
import { searchBox } from "./search.js";
import { go, listen, state } from "./state.js";
import { tabs } from "./tabs.js";
import { themeButton } from "./theme.js";
import { mountTooltip, hideTooltip } from "./tooltip.js";
import { compare } from "./view_compare.js";
import { correctness } from "./view_correctness.js";
import { graphView } from "./view_graph.js";
import { memoryView } from "./view_memory.js";
import { overview } from "./view_overview.js";
import { provenance } from "./view_provenance.js";
import { timeView } from "./view_time.js";
import { why } from "./view_why.js";

const VIEWS = {
  overview: { title: "Overview", make: (context) => ({ element: overview(context), update() {} }) },
  provenance: { title: "Provenance", make: provenance },
  graph: { title: "Graph", make: graphView },
  memory: { title: "Memory", make: memoryView },
  time: { title: "Time", make: timeView },
  correctness: { title: "Correctness", make: correctness },
  why: { title: "Why", make: why },
  compare: { title: "Compare", make: compare },
};
const OWN = { tab: null, text: null, line: null, kind: null, decision: null, finding: null, cell: null, output: null };

function start() {
  const report = readReport();
  const context = { report, lineage: new Lineage(report), schedule: new Schedule(report) };
  const made = new Map();
  let shown = null;

  const wrong = report.run ? report.run.checks.filter((check) => !check.ok).length + report.run.findings.length + (report.run.bisect && !report.run.bisect.ok ? 1 : 0) : 0;
  const bar = tabs("views", Object.entries(VIEWS).map(([key, { title }]) => ({ key, title, badge: key === "correctness" && wrong ? String(wrong) : null })), (key) => go({ ...OWN, view: key }));
  const inspector = new Inspector(report);
  const body = h("div", { class: "body" });
  const main = h("main", { class: "main", id: "main", tabindex: "-1" }, bar.panel);
  const mark = svg("svg", { viewBox: "0 0 22 22", class: "mark", "aria-hidden": "true" },
    [[2, 2], [12, 2], [2, 12]].map(([x, y]) => svg("rect", { x, y, width: 8, height: 8, rx: 2, fill: "currentColor", opacity: x === 12 ? 0.55 : 1 })), svg("circle", { cx: 16, cy: 16, r: 4, fill: "currentColor", opacity: 0.35 }));
  const about = [plural(report.ops.length, "operation"), report.totals.us ? microsWithin(report.totals.us, report.totals.uncertainty) : null, `target ${report.bundle.target}`].filter(Boolean).join(" · ");
  const skip = h("a", { class: "skip", href: "#main", text: "skip to the content", on: { click: (event) => { event.preventDefault(); main.focus(); } } });

  function show(current, before = {}) {
    hideTooltip();
    const key = VIEWS[current.view] ? current.view : current.op !== undefined || current.text !== undefined ? "provenance" : current.tensor !== undefined ? "memory" : "overview";
    bar.select(key);
    if (!made.has(key)) made.set(key, VIEWS[key].make(context));
    const view = made.get(key);
    body.classList.toggle("is-bare", !inspector.show());
    if (shown !== view) {
      bar.panel.replaceChildren(view.element);
      main.scrollTop = 0;
    }
    shown = view;
    view.update(current, before);
    document.title = `${VIEWS[key].title} · ${report.name} · spyrec report`;
  }

  const theme = themeButton(() => {
    if (shown) window.dispatchEvent(new Event("spyrec-redraw"));
  });
  body.append(main, inspector.element);
  document.body.append(
    h("div", {}, skip, h("header", { class: "head" }, mark, h("div", { class: "head-name" }, h("h1", { text: report.name }), h("p", { class: "head-about", text: about })), searchBox(report), theme)),
    h("nav", { "aria-label": "views" }, bar.bar), body);
  mountTooltip();
  listen(show);
  show(state());
}

start();
