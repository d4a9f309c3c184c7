// Colours that people with colour-blindness tell apart: six of Okabe and Ito for kinds, two more that stay apart from these on white and on black (a test simulates it), a ramp for amounts.
//
// The ramp is computed in OKLCH: its lightness rises evenly from end to end, so that it also reads without any hue.

const KIND_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#993311", "#ddccaa"];

export function kind(number) {
  return KIND_COLOURS[number % KIND_COLOURS.length];
}

export const KINDS = KIND_COLOURS.length;

const RAMP = Array.from({ length: 65 }, (_, step) => step / 64).map((share) =>
  oklch(0.34 + 0.56 * share, 0.1 + 0.05 * Math.sin(Math.PI * share), 285 - 190 * share),
);

// `share` from 0 to 1; beyond it is cut off.
export function ramp(share) {
  const place = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 1));
  return RAMP[Math.round(place * (RAMP.length - 1))];
}

export function rampSteps(steps) {
  return Array.from({ length: steps }, (_, step) => ramp(step / (steps - 1)));
}

// Text over a colour: whichever of black and white has more contrast.
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255).map(linear);
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return luminance > 0.18 ? "#10141a" : "#ffffff";
}

export function withAlpha(colour, alpha) {
  return colour + Math.round(alpha * 255).toString(16).padStart(2, "0");
}

function linear(value) {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

function oklch(lightness, chroma, degrees) {
  const hue = (degrees * Math.PI) / 180;
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return `#${[
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ].map(channel).join("")}`;
}

function channel(value) {
  const cut = Math.max(0, Math.min(1, value));
  const encoded = cut <= 0.0031308 ? 12.92 * cut : 1.055 * cut ** (1 / 2.4) - 0.055;
  return Math.round(255 * encoded).toString(16).padStart(2, "0");
}
