// The first page: what the model costs, where it goes, and where to look for which answer.

import { kind } from "./colours.js";
import { h } from "./dom.js";
import { bytes, count, flops, micros, microsWithin, percent, plural, ratio } from "./format.js";
import { card, cardBody, legend, tile } from "./parts.js";
import { go } from "./state.js";
import { Table } from "./table.js";

export const LIMITS = ["memory", "compute", "ring"];

export function overview({ report }) {
  const { totals, run } = report;
  const moved = totals.read + totals.written;
  const tiles = h("div", { class: "tiles" },
    tile("predicted time of a run", totals.us ? micros(totals.us) : "not predicted", totals.uncertainty ? `± ${Math.round(100 * totals.uncertainty)} %, nine times of ten` : report.bundle.profile),
    tile("device memory traffic", bytes(moved), totals.bound ? `${ratio(moved / totals.bound)} the lower bound of ${bytes(totals.bound)}` : `read ${bytes(totals.read)}, written ${bytes(totals.written)}`),
    tile("scratchpad at its fullest", bytes(totals.lx_peak), `${percent(totals.lx_peak / report.bundle.lx_bytes)} of ${bytes(report.bundle.lx_bytes)} a core`),
    tile("arithmetic", flops(totals.flops), `${plural(report.ops.length, "operation")}, ${plural(totals.executions, "execution")}`),
    tile("programs", count(report.programs.length), `${plural(report.loops.length, "loop")}, ${plural(report.host_steps.length, "host step")}`),
    runTile(run));
  const most = Math.max(...report.ops.map((op) => op.us), 1e-9);
  const rows = [...report.ops].sort((one, other) => other.us - one.us || other.moved - one.moved).slice(0, 10);
  const table = new Table({
    label: "the ten most expensive operations", rows, sort: { key: "us", down: true },
    columns: [
      { key: "id", title: "op", width: "4rem", numeric: true, value: (op) => op.id },
      { key: "op", title: "function", width: "9rem", value: (op) => op.op },
      { key: "name", title: "writes", width: "minmax(10rem, 2fr)", value: (op) => op.name },
      { key: "us", title: "time", width: "8rem", numeric: true, value: (op) => op.us, text: (op) => micros(op.us), bar: (op) => op.us / most },
      { key: "share", title: "share", width: "5rem", numeric: true, value: (op) => op.us, text: (op) => (totals.us ? percent(op.us / totals.us) : "–") },
      { key: "limit", title: "limited by", width: "6rem", value: (op) => op.limit ?? "–" },
      { key: "moved", title: "moved", width: "6rem", numeric: true, value: (op) => op.moved, text: (op) => bytes(op.moved) },
    ],
    activate: (op) => go({ op: op.id, tensor: null }),
  });
  const tops = card("Most expensive operations", "of all executions together; select one for its details", table.element);
  tops.classList.add("fill-table");
  table.element.style.height = `${Math.min(10, Math.max(3, rows.length)) * 28 + 36}px`;
  return h("div", { class: "view" }, tiles, tops,
    h("div", { class: "columns" }, shares(report), answers(report)), notes(report));
}

function runTile(run) {
  if (!run) return tile("run", "none recorded", "spyrec run BUNDLE --check --record RUN.json");
  const wrong = run.checks.filter((check) => !check.ok).length + run.findings.length;
  const compared = [run.checks.length ? plural(run.checks.length, "output") + " checked" : "nothing checked", run.findings.length ? plural(run.findings.length, "finding") : null].filter(Boolean);
  return tile("recorded run", run.ok && !wrong ? "agrees" : "found something", compared.join(", "), run.ok && !wrong ? "is-good" : "is-bad");
}

function shares(report) {
  const groups = [["by limit", (op) => op.limit ?? "not known"], ["by class", (op) => op.class ?? "other"]];
  const body = groups.map(([title, of]) => {
    const sums = new Map();
    for (const op of report.ops) sums.set(of(op), (sums.get(of(op)) ?? 0) + op.us);
    const total = [...sums.values()].reduce((sum, value) => sum + value, 0);
    const parts = [...sums].filter(([, value]) => value > 0).sort((one, other) => other[1] - one[1]);
    if (!total) return h("p", { class: "soft", text: "No times are known: the bundle says nothing that could be timed." });
    const bar = h("div", { class: "share-bar", role: "img", "aria-label": `${title}: ${parts.map(([name, value]) => `${name} ${percent(value / total)}`).join(", ")}` }, parts.map(([name, value], place) => {
      const part = h("span", { data: { tip: `${name}: ${micros(value)}, ${percent(value / total)}` } });
      part.style.flexGrow = String(value);
      part.style.backgroundColor = kind(place);
      return part;
    }));
    return h("div", { class: "stack-small" }, h("h3", { text: title }), bar, legend(parts.slice(0, 8).map(([name, value], place) => [kind(place), `${name} ${percent(value / total)}`])));
  });
  return card("Where the time goes", microsWithin(report.totals.us, report.totals.uncertainty), cardBody(h("div", { class: "stack" }, body)));
}

function answers(report) {
  const questions = [
    ["Which operation makes this output element?", { view: "correctness", tab: "outputs" }],
    ["Is the result right, and where is it least so?", { view: "correctness", tab: "outputs" }],
    ["Why is this tensor not in the scratchpads?", { view: "why", kind: "spilled" }],
    ["Where are the scratchpads full?", { view: "memory", tab: "lx" }],
    ["What does core 7 do at a given time?", { view: "time", tab: "timeline" }],
    ["What limits this operation?", { view: "time", tab: "roofline" }],
    ["What moves more than it has to?", { view: "memory", tab: "traffic" }],
    ["At which address lies an element?", { view: "memory", tab: "sticks" }],
    ["Which line of the model became this?", { view: "provenance" }],
    ["What changed against the other bundle?", { view: "compare" }],
  ].filter(([, where]) => where.view !== "compare" || report.against);
  return card("Where to look", null, cardBody(h("ul", { class: "link-list" }, questions.map(([text, where]) =>
    h("li", {}, h("button", { type: "button", class: "button-link is-words", text, on: { click: () => go({ tab: null, kind: null, ...where }) } }))))));
}

function notes(report) {
  const facts = [`${report.bundle.kind} bundle ${report.bundle.path}`, report.bundle.dialect ? `dialect ${report.bundle.dialect}` : null, `target ${report.bundle.target}, ${plural(report.bundle.cores, "core")}`, report.bundle.profile ? `profile ${report.bundle.profile}` : null]
    .filter(Boolean).join(" · ");
  return card("About this report", facts, report.notes.length ? cardBody(h("ul", { class: "notes" }, report.notes.map((note) => h("li", { text: note })))) : cardBody(h("p", { class: "soft", text: "Nothing had to be left out." })));
}
