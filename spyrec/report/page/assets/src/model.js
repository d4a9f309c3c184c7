// The report as it is read: what was left out of the JSON is filled in, and what points at what is found both ways.

const LISTS = ["programs", "loops", "host_steps", "modules", "ops", "tensors", "outputs", "decisions", "strings", "texts", "handles", "notes"];

export function readReport() {
  return prepare(JSON.parse(document.getElementById("report-data").textContent));
}

export function prepare(data) {
  const report = { ...data };
  for (const name of LISTS) report[name] ??= [];
  report.totals = numbers(report.totals ?? {}, ["us", "read", "written", "core_read", "bound", "flops", "ring", "executions", "lx_peak"]);
  report.memory = { lx: [], pools: [], segments: [], ...(data.memory ?? {}) };
  report.time = { engines: [], waits: [], patterns: [], schedule: [], copies: [], ...(data.time ?? {}), us: data.time?.us ?? 0 };
  report.ops.forEach((op, id) => fillOp(op, id));
  report.tensors.forEach((tensor, id) => {
    Object.assign(tensor, { id, shape: tensor.shape ?? [], writers: tensor.writers ?? [], readers: tensor.readers ?? [], decisions: tensor.decisions ?? [] });
    numbers(tensor, ["size", "read", "written"]);
    if (tensor.address !== undefined) tensor.segment ??= 0;
  });
  report.loops.forEach((loop, id) => numbers(Object.assign(loop, { id }), ["us", "read", "written"]));
  report.programs.forEach((program, id) => numbers(Object.assign(program, { id }), ["us", "pool_bytes"]));
  report.decisions.forEach((item, id) => numbers(Object.assign(item, { id, ops: item.ops ?? [] }), ["saved_bytes", "saved_us"]));
  for (const item of report.decisions) item.considered ??= [];
  report.texts.forEach((text, id) => Object.assign(text, { id, from: text.from ?? [], ops: text.ops ?? [] }));
  for (const map of [...report.memory.lx, ...report.memory.pools]) map.regions ??= [];
  const run = report.run;
  if (run) {
    for (const name of ["checks", "compares", "findings"]) run[name] ??= [];
    run.findings.forEach((finding, id) => Object.assign(finding, { id, details: finding.details ?? [] }));
  }
  if (report.against) {
    for (const name of ["pairs", "only", "moved", "facts"]) report.against[name] ??= [];
    numbers(report.against.totals, ["us", "read", "written", "core_read", "bound", "flops", "executions", "lx_peak"]);
  }
  return report;
}

function fillOp(op, id) {
  Object.assign(op, {
    id, loops: op.loops ?? [], cores: op.cores ?? [], dims: op.dims ?? [], inputs: op.inputs ?? [], outputs: op.outputs ?? [], decisions: op.decisions ?? [],
  });
  numbers(op, ["executions", "us", "read", "written", "core_read", "flops", "ring", "bound", "start_us"]);
  op.moved = op.read + op.written;
  op.excess = op.moved - op.bound;
  op.coreCount = op.cores.reduce((sum, [first, past]) => sum + past - first, 0);
}

function numbers(record, names) {
  for (const name of names) record[name] ??= 0;
  return record;
}

export function coreList(spans) {
  return spans.flatMap(([first, past]) => Array.from({ length: past - first }, (_, step) => first + step));
}

export function coreText(spans) {
  return spans.map(([first, past]) => (past - first === 1 ? String(first) : `${first}–${past - 1}`)).join(", ") || "none";
}

export function hasCore(spans, core) {
  return spans.some(([first, past]) => first <= core && core < past);
}

export function opTitle(report, id) {
  const op = report.ops[id];
  return op ? `${id} ${op.op} → ${op.name}` : "nobody";
}

export function memoryWord(memory) {
  return {
    argument: "device memory (argument)", pool: "device memory (pool)", program: "device memory (program)", segment: "device memory (segment)",
    lx: "LX", symbol: "given by the launch",
  }[memory] ?? memory ?? "not known";
}

// An operation by number, name or file, as an address may have it.
export function findOp(report, word) {
  if (word === undefined || word === null) return null;
  if (/^\d+$/.test(word)) return Number(word) < report.ops.length ? Number(word) : null;
  const at = report.ops.findIndex((op) => op.name === word || op.file === word || op.node === word);
  return at < 0 ? null : at;
}

export function findTensor(report, word) {
  if (word === undefined || word === null) return null;
  if (/^\d+$/.test(word)) return Number(word) < report.tensors.length ? Number(word) : null;
  const at = report.tensors.findIndex((tensor) => tensor.name === word);
  return at < 0 ? null : at;
}

// The largest error over its bound that a run found at an operation; null where nothing of it was compared.
export function errorOf(report, id) {
  const run = report.run;
  if (!run) return null;
  const ratios = run.checks.filter((check) => report.outputs[check.output]?.op === id).map((check) => Number(check.bound_ratio));
  if (run.bisect?.worst_op === id && run.bisect.worst_ratio !== undefined) ratios.push(Number(run.bisect.worst_ratio));
  if (run.bisect?.op === id && run.bisect.error !== undefined && run.bisect.bound) ratios.push(Number(run.bisect.error) / Number(run.bisect.bound));
  const known = ratios.filter((value) => !Number.isNaN(value));
  return known.length ? Math.max(...known) : null;
}
