"""An independent slow executor: straight from the text of "how a SuperDSC executes", on the JSON, in float64.

It shares nothing with ``spyrec.emulator``: every element's address is computed by the address formula, element by
element (vectorised over the box of one core), and every stored value is rounded once.  Memory maps a region name (an
argument index, "pool", or a core's "lx") to its bytes.
"""

# It walks JSON as it stands in the file, whose members have no declared types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeArgument=false, reportUnknownLambdaType=false

from __future__ import annotations

from math import erf, prod

import numpy as np
import numpy.typing as npt

from spyrec.hardware import dlfloat

Doubles = npt.NDArray[np.float64]
LX_BYTES = 2 << 20


def decode(fmt: str, patterns: npt.NDArray[np.unsignedinteger]) -> Doubles:
    if fmt == "SEN169_FP16":
        return dlfloat.decode(patterns.astype(np.uint16)).astype(np.float64)
    if fmt == "IEEE_FP32":
        return patterns.astype(np.uint32).view(np.float32).astype(np.float64)
    if fmt == "SEN143_FP8":
        sign, exponent, fraction = patterns >> 7, (patterns >> 3) & 15, patterns & 7
        magnitude = np.where(exponent > 0, (1 + fraction / 8) * 2.0 ** (exponent.astype(int) - 7), fraction / 512)
        return np.where(sign == 1, -magnitude, magnitude)
    return patterns.astype(np.float64)


def encode(fmt: str, values: Doubles) -> npt.NDArray[np.unsignedinteger]:
    if fmt == "SEN169_FP16":
        return dlfloat.encode(values)
    if fmt == "IEEE_FP32":
        with np.errstate(over="ignore"):
            return values.astype(np.float32).view(np.uint32)
    if fmt == "SEN143_FP8":
        finite = np.array([decode(fmt, np.array([p], np.uint8))[0] for p in range(127)])
        nearest = np.abs(np.abs(values)[:, None] - finite[None, :]).argmin(axis=1)  # inputs of the tests are no ties
        return np.where(values < 0, nearest + 128, nearest).astype(np.uint8)
    return values.astype(np.int64).astype(np.uint32)


class Operand:
    def __init__(self, dsc: dict, position: int, rows: int | None) -> None:
        node = next(item for item in dsc["scheduleTree_"] if item["ldsIdx_"] == position)
        entry = next(item for item in dsc["labeledDs_"] if item["ldsIdx_"] == position)
        label = dsc["primaryDsInfo_"][entry["dsType_"]]
        self.order = node["layoutDimOrder_"]
        self.scale = dict(zip(label["layoutDimOrder_"], entry["scale_"]))
        *paired, self.stick = label["stickDimOrder_"]
        self.size = prod(label["stickSize_"])
        self.pairs = paired[0] if paired else None
        # coordinate -> place in a stick, from the folds of the file, outermost first
        info = node["coordinates_"]["coordInfo"][self.stick]
        count = 2 if paired else info["elemArr"]
        alphas = [item["Affine"]["alpha_"] for item in info["folds"]["dim_prop_func"][-count:]][1:]
        factors = [item["factor_"] for item in info["folds"]["dim_prop_attr"][-count:]][1:]
        self.place = np.zeros(self.size, np.int64)
        for place in range(prod(factors)):
            digits = np.unravel_index(place, factors)
            self.place[sum(alpha * int(digit) for alpha, digit in zip(alphas, digits)) % self.size] = place
        self.bytes = entry["wordLength"]
        self.format = entry["dataFormat_"]
        self.is_lx = node["component_"] == "lx"
        self.gap = {dim: int(next(iter(gaps.values()))) for dim, gaps in node.get("backGapCore_", {}).items()}
        self.starts = {
            int(key[1:].split(",")[0]): int(v) for key, v in node["startAddressCoreCorelet_"]["data_"].items()
        }
        self.kind = node["indirectAllocType_"]
        self.rows = rows
        self.node = node

    def strides(self, extents: dict[str, int], short: set[str], index_dims: list[str]) -> dict[str, int]:
        strides, stride, seen_row = {}, 1, False
        for dim in self.order:
            if self.scale[dim] != 1:
                continue
            extent = extents[dim] + (-1 if dim in short else 1) * self.gap.get(dim, 0)
            if dim == self.stick:
                extent = -(-extent // self.size)
            if self.kind == "value_tensor" and dim in index_dims:
                extent = (self.rows or 1) if not seen_row else 1
                if not seen_row:
                    strides[dim] = stride
                seen_row = True
            else:
                strides[dim] = stride
            stride *= extent
        return strides

    def address(
        self, start: int, strides: dict[str, int], at: dict[str, npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64]:
        result = np.full(len(next(iter(at.values()))), start, np.int64)
        for dim, stride in strides.items():
            if dim == self.stick and self.pairs is not None:
                # two rows of 128 are two sticks: of 64 columns, row 0 and row 1 in turn
                row, column = at[self.pairs] % 2, at[dim] % self.size
                result += at[dim] // self.size * stride * 128 + column // 64 * strides[self.pairs] * 128
                result += (column % 64) * 2 + row - row * strides[self.pairs] * 128
            elif dim == self.stick:
                result += at[dim] // self.size * stride * 128 + self.place[at[dim] % self.size] * self.bytes
            else:
                result += at[dim] * stride * 128
        return result


class Machine:
    """Memory by region; ``bases`` gives each HBM region's baked address."""

    def __init__(self, regions: dict[object, npt.NDArray[np.uint8]], bases: dict[object, int]) -> None:
        self.regions = regions
        self.bases = bases
        self.lx: dict[int, npt.NDArray[np.uint8]] = {}

    def locate(self, address: int) -> tuple[npt.NDArray[np.uint8], int]:
        for name, base in self.bases.items():
            if base <= address < base + len(self.regions[name]):
                return self.regions[name], base
        raise AssertionError(f"address {address} is nowhere")

    def memory(self, operand: Operand, core: int, start: int) -> tuple[npt.NDArray[np.uint8], int]:
        if operand.is_lx:
            return self.lx.setdefault(core, np.full(LX_BYTES, 0x7F, np.uint8)), 0
        return self.locate(start)

    def read(self, operand: Operand, core: int, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.unsignedinteger]:
        memory, base = self.memory(operand, core, int(addresses[0]))
        result = np.zeros(len(addresses), np.uint64)
        for byte in range(operand.bytes):
            result |= memory[addresses - base + byte].astype(np.uint64) << np.uint64(8 * byte)
        return result.astype({1: np.uint8, 2: np.uint16, 4: np.uint32}[operand.bytes])

    def write(self, operand: Operand, core: int, addresses: npt.NDArray[np.int64], patterns: npt.NDArray) -> None:
        memory, base = self.memory(operand, core, int(addresses[0]))
        for byte in range(operand.bytes):
            memory[addresses - base + byte] = (patterns.astype(np.uint64) >> np.uint64(8 * byte)).astype(np.uint8)


UNARY = {
    "abs": np.abs, "neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh,
    "floor": np.floor,
    "rsqrt": lambda x: x**-0.5, "reciprocal": lambda x: 1 / x, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relufwd": lambda x: np.where(x > 0, x, 0.0), "silu": lambda x: x / (1 + np.exp(-x)),
    "gelufwd": lambda x: np.array([v * 0.5 * (1 + erf(v / 2**0.5)) for v in x]),
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "realdiv": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "notequal": np.not_equal,
    "greaterequal": np.greater_equal, "greaterthan": np.greater, "lesserequal": np.less_equal, "lesserthan": np.less,
}  # fmt: skip
FOLDS = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "exx2": np.add, "prod": np.multiply}


class Execution:
    def __init__(self, machine: Machine, document: dict, bound: dict[int, int], rows: int | None = None) -> None:
        self.machine = machine
        (root,) = document.values()
        (self.dsc,) = root["dscs_"][0].values()
        self.op = self.dsc["computeOp_"][0]["opFuncName"]
        self.dims = [key[:-1] for key in self.dsc["N_"] if key != "name_"]
        self.n = {d: self.dsc["N_"][d + "_"] for d in self.dims}
        self.w = root["numWkSlicesPerDim_"]
        self.p = {d: self.dsc["dataStageParam_"]["0"]["ss_"][d + "_"] for d in self.dims}
        self.slices: dict[int, dict[str, int]] = {int(c): s for c, s in root["coreIdToWkSlice_"].items()}
        self.operands = [Operand(self.dsc, i, rows) for i in range(len(self.dsc["scheduleTree_"]))]
        for operand in self.operands:
            operand.starts = {c: bound.get(s, s) for c, s in operand.starts.items()}
        compute = self.dsc["computeOp_"][0]
        number = [int(name.split("-idx")[1]) for name in compute["outputLabeledDs"]]
        self.out = number[0]
        self.inputs = [i for i in (int(name.split("-idx")[1]) for name in compute["inputLabeledDs"]) if i != self.out]
        self.index = next((i for i, o in enumerate(self.operands) if o.kind == "index_tensor"), None)
        self.constants = {}
        if self.dsc["constantInfo_"] != "{}":
            for entry in self.dsc["constantInfo_"].values():
                bits = entry["data_"]["data_"]["[0, 0, 0]"][0]
                fmt = "IEEE_FP32" if entry["dataFormat_"] == "IEEE_FP32" else "SEN169_FP16"
                self.constants[entry["name_"]] = float(decode(fmt, np.array([bits]))[0])
        self.valid = dict(self.p)
        self.short = [self.short_of(o) for o in self.operands]
        for operand, short in zip(self.operands, self.short):
            for dim in short:
                self.valid[dim] = min(self.valid[dim], self.n[dim] - operand.gap[dim])
        index_dims = self.operands[self.index].order if self.index is not None else []
        self.index_dims = list(index_dims)
        self.strides = [
            o.strides(self.p if o.is_lx else self.n, s, self.index_dims) for o, s in zip(self.operands, self.short)
        ]

    def short_of(self, operand: Operand) -> set[str]:
        if self.op != "ReStickifyOpHBM":
            return set()
        other = next(o for o in self.operands if o is not operand)
        return {
            d
            for d, gap in operand.gap.items()
            if d != operand.stick and d == other.stick and self.w[d] == 1 and 0 < gap < other.size
        }

    def box(self) -> dict[str, npt.NDArray[np.int64]]:
        grid = np.indices(tuple(self.valid[d] for d in self.dims)).reshape(len(self.dims), -1)
        return {d: grid[i].astype(np.int64) for i, d in enumerate(self.dims)}

    def where(self, position: int, core: int, at: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        return self.operands[position].address(self.operands[position].starts[core], self.strides[position], at)

    def load(self, position: int, core: int, at: dict[str, npt.NDArray[np.int64]], lane: int = 0) -> Doubles:
        operand = self.operands[position]
        patterns = self.machine.read(operand, core, self.where(position, core, at) + lane * operand.bytes)
        return decode(operand.format, patterns)

    def run(self) -> None:
        base = self.op.removesuffix("nonstick")
        if base in FOLDS or "matmul" in base:
            self.fold(base)
            return
        if self.op.startswith("topk"):
            self.top()
            return
        at = self.box()
        results = [(core, self.where(self.out, core, at), self.patterns(core, at)) for core in self.slices]
        for core, addresses, patterns in results:
            self.machine.write(self.operands[self.out], core, addresses, patterns)

    def top(self) -> None:
        """First k of each row in descending order, ties by position; a core has its slice of them."""
        (folded,) = (d for d in self.dims if d not in self.strides[self.out])
        taken = next((d for d in self.dims if d not in self.strides[self.inputs[0]]), "")
        (other,) = (d for d in self.dims if d not in {folded, taken})
        for row in range(self.n[other]):
            values = []
            for place in range(self.n[folded]):
                at = {d: np.array([{folded: place, other: row}.get(d, 0)]) for d in self.dims}
                values.append((-float(self.load(self.inputs[0], 0, at)[0]), place))
            for rank, (value, place) in enumerate(sorted(values)[: self.n.get(taken, 1)]):
                core = next(c for c, s in self.slices.items() if s.get(taken, 0) == rank // self.p.get(taken, 1))
                at = {d: np.array([{taken: rank % self.p.get(taken, 1), other: row}.get(d, 0)]) for d in self.dims}
                stored = np.array([float(place) if self.op == "topkindex" else -value])
                out = self.operands[self.out]
                self.machine.write(out, core, self.where(self.out, core, at), encode(out.format, stored))

    def patterns(self, core: int, at: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.unsignedinteger]:
        out = self.operands[self.out]
        if self.index is not None:
            return self.gathered(core, at)
        if self.op in {"identity", "ReStickifyOpHBM"}:
            return self.machine.read(self.operands[self.inputs[0]], core, self.where(self.inputs[0], core, at))
        with np.errstate(all="ignore"):
            return encode(out.format, np.asarray(self.values(core, at), np.float64))

    def values(self, core: int, at: dict[str, npt.NDArray[np.int64]]) -> Doubles:
        if self.op == "layernormscale":
            first, second = (self.load(self.inputs[0], core, at, lane) for lane in (0, 1))
            return 1 / np.sqrt(second - first**2 + self.constants["eps"])
        values = [self.load(i, core, at) for i in self.inputs]
        values[0] = self.masked(values[0], core, at)
        if self.op in BINARY:
            return BINARY[self.op](*values)
        if self.op == "where3":
            return np.where(values[0] != 0, values[1], values[2])
        if self.op == "clip":
            return np.clip(values[0], self.constants["clipMin"], self.constants["clipMax"])
        if self.op == "softplus":
            beta, limit = self.constants["softplusBeta"], self.constants["softplusThresh"]
            return np.where(beta * values[0] > limit, values[0], np.log1p(np.exp(beta * values[0])) / beta)
        if self.op == "layernormnorm":
            return (values[0] - values[1]) * values[2] * values[3] + values[4]
        return UNARY.get(self.op, lambda x: x)(values[0])

    def gathered(self, core: int, at: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.unsignedinteger]:
        assert self.index is not None
        rows = self.machine.read(self.operands[self.index], core, self.where(self.index, core, at)).astype(np.int64)
        value = next(i for i, o in enumerate(self.operands) if o.kind == "value_tensor")
        zero = {d: 0 if d in self.index_dims else s for d, s in self.slices[core].items()}
        first = next(c for c, s in self.slices.items() if s == zero)
        row_dim = next(d for d in self.operands[value].order if d in self.index_dims)
        return self.machine.read(self.operands[value], first, self.where(value, first, {**at, row_dim: rows}))

    def fold(self, base: str) -> None:
        """Every (output address -> total) over all cores, cores in slice order; then one rounding."""
        out = self.operands[self.out]
        at = self.box()
        reduced = [d for d in self.dims if d not in self.strides[self.out]]
        cores = sorted(self.slices, key=lambda c: [self.slices[c][d] for d in reduced])
        kept = [d for d in self.dims if d not in reduced]
        totals: dict[tuple[int, int, int], Doubles] = {}
        for core in cores:
            terms = self.terms(base, core, at)
            summed = "matmul" in base
            addresses = self.where(self.out, core, at)
            shape = [self.valid[d] for d in self.dims]
            order = [self.dims.index(d) for d in kept + reduced]
            size = prod(self.valid[d] for d in kept)
            key_addresses = addresses.reshape(shape).transpose(order).reshape(size, -1)[:, 0]
            for lane, values in enumerate(terms):
                if summed:
                    folded = values
                else:
                    folded = FOLDS[base].reduce(values.reshape(shape).transpose(order).reshape(size, -1), axis=1)
                key = (core if out.is_lx else -1, int(key_addresses[0]), lane)
                if key in totals:
                    totals[key] = FOLDS.get(base, np.add)(totals[key], folded)
                else:
                    totals[key] = folded
                factor = self.constants.get("scaling_factor", self.constants.get("exx2scale", 1.0))
                if base == "exx2" and lane == 0 and self.constants["useZeroMean"]:
                    factor = 0.0
                patterns = encode(out.format, totals[key] * factor)
                self.machine.write(out, core, key_addresses + lane * out.bytes, patterns)

    def products(self, core: int) -> Doubles:
        """Sum of products over this core's K slice, kept dims in order; K rows that are zero in B count as zero."""
        letters = {d: chr(97 + i) for i, d in enumerate(self.dims)}
        boxes, names = [], []
        for i in self.inputs:
            dims = [d for d in self.dims if d in self.strides[i]]
            grid = np.indices([self.p[d] for d in dims]).reshape(len(dims), -1)
            at = {d: grid[n].astype(np.int64) for n, d in enumerate(dims)}
            boxes.append(self.load(i, core, at).reshape([self.p[d] for d in dims]))
            names.append("".join(letters[d] for d in dims))
        a, b = boxes
        columns = tuple(i for i, letter in enumerate(names[1]) if letter not in names[0])
        row_is_zero = np.all(b == 0, axis=columns)
        rows = "".join(letter for letter in names[1] if letter in names[0])
        depth = "".join(
            letter for letter in names[0] if letter not in "".join(letters[d] for d in self.strides[self.out])
        )
        assert len(depth) == 1
        alive = np.einsum(f"{rows}->{depth}", (~row_is_zero).astype(float)) > 0
        place = names[0].index(depth)
        a = np.where(alive.reshape([-1 if n == place else 1 for n in range(a.ndim)]), a, 0.0)
        out = "".join(letters[d] for d in self.dims if d in self.strides[self.out])
        return np.einsum(f"{names[0]},{names[1]}->{out}", a, b, optimize=True).reshape(-1)

    def terms(self, base: str, core: int, at: dict[str, npt.NDArray[np.int64]]) -> list[Doubles]:
        if "matmul" in base:
            return [self.products(core)]
        values = self.masked(self.load(self.inputs[0], core, at), core, at)
        return [values, values**2] if base == "exx2" else [values]

    def masked(self, values: Doubles, core: int, at: dict[str, npt.NDArray[np.int64]]) -> Doubles:
        """Elements of input 0 in a masked range, in global coordinates, are the mask constant."""
        for dim, ranges in self.dsc["coordinateMasking_"].items():
            place = self.slices[core][dim] * self.p[dim] + at[dim]
            for start, count in ranges:
                values = np.where((place >= start) & (place < start + count), self.constants["samv-maskvalue"], values)
        return values
