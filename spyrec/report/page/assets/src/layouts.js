// Where an element of a tensor lies on the device, and which element lies at an address.
//
// Device memory is row-major over `device_size`, the last dim being a stick of 128 bytes. A device dim of stride s steps over
// host elements; neighbouring host dims that one device dim walks through together are one run.

const STICK_BYTES = 128;

export class Layout {
  constructor(tensor) {
    const { device_size: sizes, stride_map: strides, host_strides: given } = tensor.layout;
    this.sizes = sizes;
    this.strides = strides ?? sizes.map(() => -1);
    this.shape = tensor.shape;
    this.hostStrides = given ?? rowMajor(this.shape);
    this.word = STICK_BYTES / sizes[sizes.length - 1];
    this.deviceStrides = rowMajor(sizes);
    this.nbytes = sizes.reduce((product, extent) => product * extent, 1) * this.word;
    this.runs = findRuns(this);
  }

  // The device coordinate of a host index; null where the layout tells no place.
  coordinate(index) {
    const found = this.sizes.map(() => 0);
    for (const run of this.runs) {
      let rest = 0;
      for (const dim of run.dims) rest = rest * this.shape[dim] + index[dim];
      for (const { device, step } of run.tiles) {
        found[device] = Math.floor(rest / step);
        rest -= found[device] * step;
      }
      if (rest) return null;
    }
    return found.every((entry, dim) => entry < this.sizes[dim]) ? found : null;
  }

  // The host index of a device coordinate; null for padding.
  index(coordinate) {
    const found = this.shape.map(() => 0);
    for (const run of this.runs) {
      let place = run.tiles.reduce((sum, { device, step }) => sum + coordinate[device] * step, 0);
      for (const dim of [...run.dims].reverse()) {
        found[dim] = place % this.shape[dim];
        place = Math.floor(place / this.shape[dim]);
      }
      if (place) return null;
    }
    const home = this.coordinate(found);
    return home && home.every((entry, dim) => entry === coordinate[dim] || this.strides[dim] === 0) ? found : null;
  }

  address(coordinate) {
    const offset = coordinate.reduce((sum, entry, dim) => sum + entry * this.deviceStrides[dim], 0);
    return Math.floor(offset * this.word);
  }

  at(address) {
    let rest = Math.floor(address / this.word);
    return this.deviceStrides.map((stride) => {
      const entry = Math.floor(rest / stride);
      rest -= entry * stride;
      return entry;
    });
  }
}

function rowMajor(sizes) {
  const strides = sizes.map(() => 1);
  for (let dim = sizes.length - 2; dim >= 0; dim -= 1) strides[dim] = strides[dim + 1] * sizes[dim + 1];
  return strides;
}

// Host dims, outer ones first; a device dim belongs to the innermost host dim whose stride it does not undercut.
function findRuns(layout) {
  const dims = layout.shape.map((extent, dim) => ({ dim, extent, stride: layout.hostStrides[dim] })).filter((item) => item.extent > 1);
  dims.sort((one, other) => other.stride - one.stride);
  const runs = dims.map((item) => ({ dims: [item.dim], stride: item.stride, length: item.extent, tiles: [] }));
  layout.strides.forEach((stride, device) => {
    if (stride <= 0 || (layout.sizes[device] === 1 && !dims.some((item) => item.stride === stride))) return;
    const run = runs.find((item) => item.stride <= stride);
    if (run && layout.sizes[device] > 1) run.tiles.push({ device, stride });
  });
  for (let place = 0; place < runs.length - 1; ) {
    const [outer, inner] = [runs[place], runs[place + 1]];
    const isApart = outer.tiles.length && outer.tiles.every(({ stride }) => stride % outer.stride === 0) && outer.tiles.some(({ stride }) => stride === outer.stride);
    if (isApart || outer.stride !== inner.length * inner.stride) place += 1;
    else {
      runs.splice(place, 2, { dims: [...outer.dims, ...inner.dims], stride: inner.stride, length: outer.length * inner.length, tiles: [...outer.tiles, ...inner.tiles] });
      place = Math.max(0, place - 1);
    }
  }
  for (const run of runs) {
    run.tiles.sort((one, other) => other.stride - one.stride || layout.sizes[one.device] - layout.sizes[other.device]);
    for (const tile of run.tiles) tile.step = tile.stride / run.stride;
  }
  return runs;
}
