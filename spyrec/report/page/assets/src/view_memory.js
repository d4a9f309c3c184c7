// Memory: the scratchpads over time, device memory by address, traffic beside its bound, and what a stick holds.

import { inkOn, kind, withAlpha } from "./colours.js";
import { empty, h, replace } from "./dom.js";
import { address, bytes, count, micros, percent, plural, ratio, shape } from "./format.js";
import { coreText, findOp, findTensor, hasCore, opTitle } from "./model.js";
import { card, field, numberInput, select, tile } from "./parts.js";
import { byteTicks, cut, font, Stage, ticks } from "./stage.js";
import { go, state } from "./state.js";
import { Sticks } from "./sticks.js";
import { Table } from "./table.js";
import { choice, tabs } from "./tabs.js";

const TABS = [{ key: "lx", title: "Scratchpads" }, { key: "device", title: "Device memory" }, { key: "traffic", title: "Traffic" }, { key: "sticks", title: "Sticks" }];

export function memoryView(context) {
  return new MemoryView(context);
}

class MemoryView {
  constructor({ report }) {
    this.report = report;
    this.tabs = tabs("memory", TABS, (key) => go({ tab: key === "lx" ? null : key }), "subtabs");
    this.made = new Map();
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.tabs.bar), this.tabs.panel);
    this.tabs.panel.classList.add("grow", "stack");
  }

  update() {
    const tab = TABS.some((item) => item.key === state().tab) ? state().tab : "lx";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, { lx: () => new Scratchpads(this.report), device: () => new DeviceMemory(this.report), traffic: () => new Traffic(this.report), sticks: () => new Sticks(this.report) }[tab]());
    const part = this.made.get(tab);
    if (this.shown !== part) replace(this.tabs.panel, part.elements);
    this.shown = part;
    part.update();
  }
}

// Regions of bytes over operations: a scratchpad's or a pool's.
class RegionChart {
  constructor(report, label, { yTitle }) {
    Object.assign(this, { report, yTitle });
    this.stage = new Stage({
      label, zoom: "x", minimum: 4, margin: { left: 76, top: 14, right: 20, bottom: 40 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => go({ tensor: thing.region.tensor, op: null }),
    });
  }

  // `top`: bytes at the upper end; `mark`: bytes of the usable end, or null.
  show({ regions, first, past, top, mark, loops, scale }) {
    const ops = this.report.ops;
    this.first = first;
    const x = scale === "time" ? (op) => ops[Math.min(op, ops.length - 1)].start_us - ops[first].start_us : (op) => op - first;
    const end = scale === "time" ? (op) => (op + 1 < past ? ops[op + 1].start_us : ops[op].start_us + ops[op].us) - ops[first].start_us : (op) => op + 1 - first;
    const width = Math.max(1e-6, end(past - 1));
    Object.assign(this, { x, end, top, mark, loops, scale, past, width });
    const things = regions.map((region) => {
      const [begin, last] = [region.begin ?? first, region.end ?? past - 1];
      return { x: x(begin), w: Math.max(end(last) - x(begin), width * 1e-6), y: top - region.past, h: region.past - region.first, region };
    });
    // an operation that stores over what it reads does so in its middle
    for (const one of things) {
      for (const other of things) {
        if (one !== other && one.region.begin === other.region.end && one.region.first < other.region.past && other.region.first < one.region.past && one.region.begin > other.region.begin) {
          const half = (end(one.region.begin) - x(one.region.begin)) / 2;
          other.w = Math.min(other.w, x(one.region.begin) + half - other.x);
          if (!one.moved) Object.assign(one, { x: one.x + half, w: one.w - half, moved: true });
        }
      }
    }
    this.stage.setThings(things, { width, height: Math.max(1, top) });
  }

  describe({ region }) {
    const { report } = this;
    const tensor = report.tensors[region.tensor];
    const decision = report.decisions[region.decision];
    return {
      title: tensor.name,
      lines: [
        ["bytes", `[${count(region.first)}, ${count(region.past)})`], ["size", bytes(region.past - region.first)],
        ...(region.writer !== undefined ? [["written by", opTitle(report, region.writer)]] : []),
        ...(region.readers?.length ? [["read by", region.readers.length > 3 ? plural(region.readers.length, "operation") : region.readers.map((id) => opTitle(report, id)).join("; ")]] : []),
        ...(region.memory_bytes ? [["in device memory", `${bytes(region.memory_bytes)} more`]] : []),
        ...(decision ? [`${decision.kind}: ${decision.reason}`] : []),
      ],
    };
  }

  draw(context, stage, theme) {
    this.axes(context, stage, theme);
    const tensor = findTensor(this.report, state().tensor);
    const op = findOp(this.report, state().op);
    stage.clip(context);
    for (const thing of stage.things) {
      if (!stage.isSeen(thing)) continue;
      const colour = kind(thing.region.tensor);
      const [x, y, w, h_] = [stage.sx(thing.x), stage.sy(thing.y), Math.max(1.5, thing.w * stage.view.kx), Math.max(1.5, thing.h * stage.view.ky)];
      const isChosen = thing.region.tensor === tensor;
      const isUsed = op !== null && (thing.region.writer === op || thing.region.readers?.includes(op));
      const isSoft = (tensor !== null && !isChosen) || (op !== null && !isUsed);
      context.fillStyle = withAlpha(colour, isSoft ? 0.35 : 0.85);
      context.fillRect(x, y, w, h_);
      context.strokeStyle = isChosen || isUsed ? theme.ink : stage.hover === thing ? theme.ink : theme.surface;
      context.lineWidth = isChosen || isUsed ? 2 : 1;
      if (w > 3) context.strokeRect(x + 0.5, y + 0.5, w - 1, h_ - 1);
      if (h_ >= 13 && w > 24) {
        context.font = font(11, 500);
        context.textAlign = "left";
        context.fillStyle = isSoft ? theme.ink : inkOn(colour);
        const shown = Math.max(x, stage.margin.left);
        context.fillText(cut(context, this.report.tensors[thing.region.tensor].name, Math.min(x + w, stage.width) - shown - 8), shown + 4, y + Math.min(h_ / 2, 12));
      }
    }
    if (op !== null && op >= this.first && op < this.past) {
      context.fillStyle = withAlpha(theme.focus.length === 7 ? theme.focus : "#b54700", 0.18);
      context.fillRect(stage.sx(this.x(op)), stage.margin.top, Math.max(2, (this.end(op) - this.x(op)) * stage.view.kx), stage.height - stage.margin.top - stage.margin.bottom);
    }
    context.restore();
  }

  axes(context, stage, theme) {
    const { left, top, right, bottom } = stage.margin;
    context.font = font(11);
    context.textAlign = "right";
    context.lineWidth = 1;
    for (const value of byteTicks(this.top, 6)) {
      const y = stage.sy(this.top - value);
      context.strokeStyle = theme.line;
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(stage.width - right, y);
      context.stroke();
      context.fillStyle = theme.inkFaint;
      context.fillText(value ? bytes(value) : "0", left - 8, y);
    }
    if (this.mark && this.mark <= this.top) {
      const y = stage.sy(this.top - this.mark);
      context.strokeStyle = theme.bad;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(stage.width - right, y);
      context.stroke();
      context.setLineDash([]);
      context.textAlign = "left";
      context.fillStyle = theme.bad;
      context.fillText(`usable: ${bytes(this.mark)}`, left + 6, y + 9);
    }
    context.textAlign = "center";
    context.fillStyle = theme.inkFaint;
    const base = stage.height - bottom;
    const seen = [Math.max(0, stage.wx(left)), Math.min(this.width, stage.wx(stage.width - right))];
    for (const value of ticks(seen[0], seen[1], Math.max(2, stage.width / 90))) {
      if (this.scale !== "time" && !Number.isInteger(value)) continue;
      const x = stage.sx(this.scale === "time" ? value : value + 0.5);
      if (x > stage.width - right) continue;
      context.fillText(this.scale === "time" ? micros(value) : `op ${count(value + this.first)}`, x, base + 26);
    }
    for (const loop of this.loops) {
      const [from, to] = [Math.max(left, stage.sx(this.x(loop.first)) + 1), Math.min(stage.width - right, stage.sx(this.end(loop.past - 1)) - 1)];
      if (to <= from) continue;
      context.strokeStyle = kind(4);
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(from, base + 3);
      context.lineTo(from, base + 8);
      context.lineTo(to, base + 8);
      context.lineTo(to, base + 3);
      context.stroke();
      context.fillStyle = theme.inkSoft;
      if (to - from > 60) context.fillText(cut(context, `↻ ${loop.name} × ${loop.count}`, to - from - 4), (from + to) / 2, base + 15);
    }
  }
}

class Scratchpads {
  constructor(report) {
    this.report = report;
    this.maps = report.memory.lx;
    const spilled = report.decisions.filter((item) => item.kind === "spilled");
    if (!this.maps.length) {
      this.elements = [empty("Nothing lies in the scratchpads", "Every tensor is in device memory.", null), ...(spilled.length ? [this.spills(spilled)] : [])];
      this.update = () => {};
      return;
    }
    this.chart = new RegionChart(report, "scratchpad over operations", { yTitle: "bytes" });
    this.scale = "op";
    this.whole = null;
    this.about = h("p", { class: "faint" });
    const programs = [...new Set(this.maps.map((map) => map.program))];
    this.core = numberInput(0, { min: 0, max: report.bundle.cores - 1, step: 1 }, (core) => go({ core }));
    this.program = select(programs.map((id) => [String(id), `${id} (${report.programs[id]?.directory ?? ""})`]), programs[0], (id) => go({ program: id }));
    const timed = report.ops.some((op) => op.start_us > 0);
    this.headRow = h("div", { class: "row" }, programs.length > 1 ? field("program", this.program) : null, field("core", this.core),
      timed ? choice("Across", [["op", "Operations"], ["time", "Time"]], (key) => { this.scale = key; this.draw(); }) : null,
      choice("Up to", [["peak", "Its fullest"], ["whole", "All of it"]], (key) => { this.whole = key === "whole"; this.draw(); }), h("span", { class: "grow" }), this.about);
    const main = h("section", { class: "card is-flex grow", "aria-label": "Scratchpads" }, h("div", { class: "card-head" }, this.headRow), this.chart.stage.element);
    main.classList.add("chart-card");
    this.elements = [main, spilled.length ? this.spills(spilled) : h("p", { class: "view-note", text: "Nothing was spilled: all that the planner wanted in the scratchpads lies there." })];
  }

  spills(rows) {
    const table = new Table({
      label: "spilled tensors", rows, sort: { key: "bytes", down: true },
      columns: [
        { key: "subject", title: "tensor", width: "minmax(9rem, 1fr)", value: (item) => item.subject },
        { key: "reason", title: "why it lies in device memory", width: "minmax(14rem, 3fr)", value: (item) => item.reason },
        { key: "bytes", title: "costs", width: "7rem", numeric: true, value: (item) => -item.saved_bytes, text: (item) => (item.saved_bytes ? bytes(Math.abs(item.saved_bytes)) : "–") },
        { key: "us", title: "time", width: "7rem", numeric: true, value: (item) => -item.saved_us, text: (item) => (item.saved_us ? micros(Math.abs(item.saved_us)) : "–") },
      ],
      activate: (item) => go(item.tensor !== undefined ? { tensor: item.tensor, op: null } : { op: item.ops[0] ?? null, tensor: null }),
    });
    table.element.style.height = `${Math.min(6, rows.length) * 28 + 44}px`;
    const made = card("Spilled", `${plural(rows.length, "tensor")} could have lain in the scratchpads and ${rows.length === 1 ? "lies" : "lie"} in device memory`, table.element);
    made.classList.add("is-fixed");
    return made;
  }

  update() {
    const op = findOp(this.report, state().op);
    const tensor = findTensor(this.report, state().tensor);
    const core = Number(state().core ?? this.core.value);
    const wanted = state().program ?? (op !== null ? this.report.ops[op].program : tensor !== null ? this.maps.find((map) => map.regions.some((region) => region.tensor === tensor))?.program : null) ?? this.program.value;
    const inProgram = this.maps.filter((map) => map.program === Number(wanted));
    const maps = inProgram.length ? inProgram : this.maps;
    this.map = maps.find((map) => hasCore(map.cores, core)) ?? maps[0];
    this.core.value = String(core);
    this.program.value = String(this.map.program);
    this.isMissing = !hasCore(this.map.cores, core);
    this.draw();
  }

  draw() {
    const { map, report } = this;
    if (!map) return;
    const program = report.programs[map.program];
    const whole = this.whole ?? map.peak > 0.35 * map.usable;
    const top = whole ? map.usable : Math.min(map.usable, map.peak * 1.06);
    const loops = report.loops.filter((loop) => loop.program === map.program);
    this.chart.show({ regions: map.regions, first: program.first, past: program.past, top, mark: map.usable, loops, scale: this.scale });
    this.about.textContent = `${this.isMissing ? `core ${this.core.value} holds nothing here; shown are ` : ""}cores ${coreText(map.cores)}: at most ${bytes(map.peak)} of ${bytes(map.usable)} (${percent(map.peak / map.usable)})`;
    const tensor = findTensor(report, state().tensor);
    const thing = this.chart.stage.things.find((item) => item.region.tensor === tensor);
    if (thing) this.chart.stage.reveal(thing);
  }
}

class DeviceMemory {
  constructor(report) {
    this.report = report;
    const { segments, pools } = report.memory;
    const rows = report.tensors.filter((tensor) => tensor.memory !== "lx" && tensor.size);
    this.table = new Table({
      label: "tensors in device memory", rows, sort: { key: "size", down: true },
      columns: [
        { key: "name", title: "tensor", width: "minmax(11rem, 2fr)", value: (tensor) => tensor.name },
        { key: "role", title: "role", width: "7rem", value: (tensor) => tensor.role },
        { key: "memory", title: "lies in", width: "6.5rem", value: (tensor) => tensor.memory },
        { key: "address", title: "address", width: "9rem", numeric: true, value: (tensor) => tensor.address ?? null, text: (tensor) => (tensor.address === undefined ? "at launch" : address(tensor.address)) },
        { key: "size", title: "size", width: "7rem", numeric: true, value: (tensor) => tensor.size, text: (tensor) => bytes(tensor.size) },
        { key: "shape", title: "shape", width: "minmax(9rem, 1fr)", value: (tensor) => shape(tensor.shape) },
        { key: "read", title: "read", width: "6.5rem", numeric: true, value: (tensor) => tensor.read, text: (tensor) => bytes(tensor.read) },
        { key: "written", title: "written", width: "6.5rem", numeric: true, value: (tensor) => tensor.written, text: (tensor) => bytes(tensor.written) },
      ],
      activate: (tensor) => go({ tensor: tensor.id, op: null }),
      chosen: (tensor) => tensor.id === findTensor(report, state().tensor),
    });
    const tableCard = card("Tensors", `${plural(rows.length, "tensor")}, ${bytes(rows.reduce((sum, tensor) => sum + tensor.size, 0))} together`, this.table.element);
    tableCard.classList.add("grow", "fill-table");
    this.elements = [this.segments(segments), pools.length ? this.pools(pools) : null, tableCard].filter(Boolean);
  }

  segments(segments) {
    if (!segments.length) return card("Segments", "where arguments lie", empty("Addresses come with the launch", "The program takes its arguments' addresses as symbols, so that no segment is fixed.", null));
    const numbers = [...new Set(segments.map((item) => item.number))].sort((one, other) => one - other);
    const starts = new Map(numbers.map((number) => [number, Math.min(...segments.filter((item) => item.number === number).map((item) => item.first))]));
    const longest = Math.max(...segments.map((item) => item.past - starts.get(item.number)));
    const things = segments.map((item) => ({ x: item.first - starts.get(item.number), w: item.past - item.first, y: numbers.indexOf(item.number) + 0.12, h: 0.76, item }));
    const stage = new Stage({
      label: "segments of device memory", zoom: "", height: Math.min(320, 30 + 26 * numbers.length), minimum: 5, margin: { left: 190, right: 20, top: 4, bottom: 24 },
      draw: (context, own, theme) => {
        context.font = font(11);
        context.textAlign = "right";
        numbers.forEach((number, row) => {
          context.fillStyle = theme.inkSoft;
          context.fillText(`segment ${number}, ${address(starts.get(number))}`, 180, own.sy(row + 0.5));
          context.fillStyle = theme.surface2;
          context.fillRect(own.sx(0), own.sy(row + 0.12), longest * own.view.kx, 0.76 * own.view.ky);
        });
        context.textAlign = "center";
        for (const value of byteTicks(longest, 6)) {
          context.fillStyle = theme.inkFaint;
          context.textAlign = own.sx(value) > own.width - 60 ? "right" : "center";
          context.fillText(value ? `+${bytes(value)}` : "0", own.sx(value), own.height - 10);
        }
        const chosen = findTensor(this.report, state().tensor);
        for (const thing of things) {
          const colour = kind(thing.item.tensor);
          const w = Math.max(2, thing.w * own.view.kx);
          context.fillStyle = withAlpha(colour, chosen === null || chosen === thing.item.tensor ? 0.85 : 0.35);
          context.fillRect(own.sx(thing.x), own.sy(thing.y), w, thing.h * own.view.ky);
          context.textAlign = "left";
          context.font = font(11, 500);
          const name = this.report.tensors[thing.item.tensor].name;
          const isInside = context.measureText(name).width < w - 10;
          context.fillStyle = isInside ? inkOn(colour) : theme.ink;
          if (isInside || things.filter((other) => other.y === thing.y).length === 1) context.fillText(name, own.sx(thing.x) + (isInside ? 5 : w + 5), own.sy(thing.y + thing.h / 2));
        }
      },
      describe: ({ item }) => {
        const tensor = this.report.tensors[item.tensor];
        return { title: tensor.name, lines: [["role", tensor.role], ["addresses", `${address(item.first)} to ${address(item.past)}`], ["size", bytes(item.past - item.first)]] };
      },
      activate: ({ item }) => go({ tensor: item.tensor, op: null }),
    });
    stage.setThings(things, { width: longest, height: numbers.length });
    this.segmentStage = stage;
    const made = card("Segments", "where arguments lie, as programs with fixed addresses have them", stage.element);
    made.classList.add("is-fixed");
    return made;
  }

  pools(pools) {
    this.poolChart = new RegionChart(this.report, "pool over operations", { yTitle: "bytes" });
    this.poolChart.stage.surface.style.height = "240px";
    const choose = select(pools.map((pool, place) => [String(place), `program ${pool.program}: ${bytes(pool.size)}`]), 0, (place) => show(pools[Number(place)]));
    const show = (pool) => {
      const program = this.report.programs[pool.program];
      this.poolChart.show({ regions: pool.regions, first: program.first, past: program.past, top: pool.size, mark: null, loops: this.report.loops.filter((loop) => loop.program === pool.program), scale: "op" });
    };
    show(pools[0]);
    const made = h("section", { class: "card is-flex is-fixed", "aria-label": "Pool" }, h("div", { class: "card-head" }, h("h2", { text: "Pool" }), h("p", { text: "device memory that a program uses for what lies between its operations" }), pools.length > 1 ? field("of", choose) : null), this.poolChart.stage.element);
    return made;
  }

  update() {
    this.table.refresh();
    const tensor = findTensor(this.report, state().tensor);
    if (tensor !== null) this.table.reveal((row) => row.id === tensor);
    this.segmentStage?.draw();
    this.poolChart?.stage.draw();
  }
}

class Traffic {
  constructor(report) {
    this.report = report;
    const { totals } = report;
    const moved = totals.read + totals.written;
    const most = Math.max(1, ...report.ops.map((op) => Math.max(op.moved, op.core_read)));
    this.table = new Table({
      label: "traffic of operations", rows: report.ops, sort: { key: "excess", down: true },
      columns: [
        { key: "id", title: "op", width: "3.5rem", numeric: true, value: (op) => op.id },
        { key: "op", title: "function", width: "8rem", value: (op) => op.op },
        { key: "name", title: "writes", width: "minmax(9rem, 2fr)", value: (op) => op.name },
        { key: "moved", title: "moved", width: "7rem", numeric: true, value: (op) => op.moved, text: (op) => bytes(op.moved), bar: (op) => op.moved / most, tip: "distinct bytes of device memory, of all executions" },
        { key: "bound", title: "bound", width: "7rem", numeric: true, value: (op) => op.bound, text: (op) => bytes(op.bound), bar: (op) => op.bound / most, tip: "its share of what no plan undercuts" },
        { key: "excess", title: "over it", width: "7rem", numeric: true, value: (op) => op.excess, text: (op) => (op.excess > 0 ? bytes(op.excess) : "–"), bar: (op) => op.excess / most },
        { key: "core", title: "cores read", width: "7rem", numeric: true, value: (op) => op.core_read, text: (op) => bytes(op.core_read), tip: "the same bytes, once for each core that reads them" },
        { key: "ring", title: "ring", width: "6rem", numeric: true, value: (op) => op.ring, text: (op) => (op.ring ? bytes(op.ring) : "–") },
        { key: "runs", title: "times", width: "5rem", numeric: true, value: (op) => op.executions, text: (op) => count(op.executions) },
      ],
      activate: (op) => go({ op: op.id, tensor: null }),
      chosen: (op) => op.id === findOp(report, state().op),
    });
    const tiles = h("div", { class: "tiles" }, tile("moved", bytes(moved)), tile("lower bound", bytes(totals.bound)),
      tile("moved over bound", totals.bound ? ratio(moved / totals.bound) : "–"), tile("read by cores", bytes(totals.core_read), totals.read ? `each byte ${ratio(totals.core_read / totals.read)}` : null));
    const main = card("Traffic by operation", "device memory; sorted by what is moved beyond the lower bound", this.table.element);
    main.classList.add("grow", "fill-table");
    this.elements = [tiles, main];
  }

  update() {
    this.table.refresh();
    const op = findOp(this.report, state().op);
    if (op !== null) this.table.reveal((row) => row.id === op);
  }
}

