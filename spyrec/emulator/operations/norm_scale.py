"""Plans of the layer norm scale: one value of every input stick, repeated over the lanes of the output."""

from __future__ import annotations

import math

import numpy as np

from spyrec.emulator.engine import Executable, Integers, Mover, Setting, StepRequest
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.kernels.codec import DECODERS, can_store
from spyrec.emulator.kernels.norm import ScaleRecord, scale_step
from spyrec.emulator.kernels.records import Held
from spyrec.emulator.operations.bound_calls import BoundCalls, KernelStep
from spyrec.emulator.operations.pointwise import constants_of


class NormScaleExecutable(Executable):
    """layernormscale: ``1 / sqrt(lane 1 - lane 0 squared + eps)`` of each input stick, stored in every output lane."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.eps = constants_of(setting)["eps"]
        self.rows, self.box = self._rows_and_box(setting)

    def _rows_and_box(self, setting: Setting) -> tuple[dict[str, int], dict[str, int]]:
        rows = {dim: size for dim, size in setting.extents.items() if setting.extends(setting.inputs[0], dim)}
        # Rows first: the result is computed per row and repeated over the rest of the box.
        return rows, {**rows, **{dim: size for dim, size in setting.extents.items() if dim not in rows}}

    @property
    def is_bindable(self) -> bool:
        """Whether a kernel can round the results."""
        return can_store(self.setting.codec(self.setting.output))

    @property
    def is_separable(self) -> bool:
        """Whether a kernel can round the results."""
        return self.is_bindable

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step."""
        setting = request.setting
        source, target = setting.inputs[0], setting.output
        sources, targets = (np.ascontiguousarray(request.starts[position]) for position in (source, target))
        own_rows, own_box = self._rows_and_box(setting)
        rows = outer_sum([setting.offsets(source, dim) for dim in own_rows])
        box = outer_sum([setting.offsets(target, dim) for dim in own_box])
        decode = DECODERS[setting.codec(source).storage.value].address
        held = Held()
        record = ScaleRecord(
            source_row=source,
            target_row=target,
            sources=held.at(sources),
            targets=held.at(targets),
            rows=len(rows),
            source_places=held.at(rows),
            repeats=len(box) // len(rows),
            target_places=held.at(box),
            decode=decode,
            lane_bytes=setting.step_bytes(source),
            eps=held.at(np.array([self.eps])),
            word_bytes=setting.codec(target).word_bytes,
        )
        boxes = len(sources)
        return BoundCalls([KernelStep.of(scale_step, record, held, boxes, boxes * len(box))])

    def run(self, starts: Integers) -> None:
        """Execute once."""
        setting = self.setting
        source = setting.inputs[0]
        reader = Mover(setting, source, self.rows)
        codec = setting.codec(source)
        first = codec.decode(reader.load(starts[source]))
        second = codec.decode(reader.load(starts[source] + setting.step_bytes(source)))
        with np.errstate(all="ignore"):
            scale = 1.0 / np.sqrt(second - first * first + self.eps)
        repeats = math.prod(self.box.values()) // math.prod(self.rows.values())
        patterns = np.repeat(setting.codec(setting.output).encode(scale), repeats, axis=1)
        Mover(setting, setting.output, self.box).store(starts[setting.output], patterns)
