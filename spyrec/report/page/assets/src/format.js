// Numbers with their units, as people read them. Every number of the page goes through here.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function count(value) {
  return WHOLE.format(value);
}

export function digits(value, most = 3) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return String(value);
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size >= most - 1) return WHOLE.format(value);
  if (size < -4) return value.toExponential(most - 1);
  return value.toFixed(Math.min(12, most - 1 - size)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 10240) return `${WHOLE.format(value)} B`;
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (size >= factor) return `${digits(value / factor)} ${unit}`;
  }
  return `${WHOLE.format(value)} B`;
}

export function exactBytes(value) {
  return Math.abs(value ?? 0) < 10240 ? bytes(value) : `${bytes(value)} (${WHOLE.format(value)} B)`;
}

export function micros(value) {
  if (value === null || value === undefined) return "–";
  const length = Math.abs(value);
  if (length >= 1e6) return `${digits(value / 1e6, 4)} s`;
  if (length >= 1e4) return `${digits(value / 1e3, 4)} ms`;
  return `${digits(value, 4)} µs`;
}

export function microsWithin(value, share) {
  return share ? `${micros(value)} ± ${Math.round(share * 100)} %` : micros(value);
}

export function flops(value) {
  if (!value) return "0 flop";
  for (const [unit, factor] of [["Tflop", 1e12], ["Gflop", 1e9], ["Mflop", 1e6], ["kflop", 1e3]]) {
    if (value >= factor) return `${digits(value / factor)} ${unit}`;
  }
  return `${WHOLE.format(value)} flop`;
}

export function ratio(value) {
  return value === null || value === undefined ? "–" : `${digits(value)} ×`;
}

export function percent(value) {
  return `${digits(100 * value)} %`;
}

export function address(value) {
  return value === null || value === undefined ? "–" : `0x${value.toString(16)}`;
}

// 0-29, 31
export function ranges(numbers) {
  const spans = [];
  for (const number of numbers) {
    const last = spans[spans.length - 1];
    if (last && number === last[1] + 1) last[1] = number;
    else spans.push([number, number]);
  }
  return spans.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
}

export function shape(sizes) {
  return sizes && sizes.length ? sizes.join(" × ") : "scalar";
}

export function plural(number, word, many = `${word}s`) {
  return `${WHOLE.format(number)} ${number === 1 ? word : many}`;
}
