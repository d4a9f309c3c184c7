"""Plans of the layer norm scale: one value of every input stick, repeated over the lanes of the output."""

from __future__ import annotations

import numpy as np

from spyrec.emulator.engine import KernelExecutable, Setting, StepRequest
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.kernels.codec import DECODERS, ROUNDERS
from spyrec.emulator.kernels.copies import copier
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.kernels.norm import ScaleRecord, scale_step
from spyrec.emulator.kernels.records import Held
from spyrec.emulator.operations.bound_calls import BoundCalls, KernelStep
from spyrec.emulator.operations.pointwise import constants_of


class NormScaleExecutable(KernelExecutable):
    """layernormscale: ``1 / sqrt(lane 1 - lane 0 squared + eps)`` of each input stick, stored in every output lane."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.eps = constants_of(setting)["eps"]

    @property
    def is_separable(self) -> bool:
        """Sticks are independent."""
        return True

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step."""
        setting = request.setting
        source, target = setting.inputs[0], setting.output
        sources, targets = (np.ascontiguousarray(request.starts[position]) for position in (source, target))
        kept = [dim for dim in setting.extents if setting.extends(source, dim)]
        rows = outer_sum([setting.offsets(source, dim) for dim in kept])
        # rows first: the result is computed per row and repeated over the rest of the box
        repeated = [dim for dim in setting.extents if dim not in kept]
        box = outer_sum([setting.offsets(target, dim) for dim in (*kept, *repeated)])
        decode = DECODERS[setting.codec(source).storage.value].address
        repeats, result_bytes = len(box) // len(rows), setting.step_bytes(target)
        is_adjacent = bool((np.diff(box.reshape(-1, repeats)) == result_bytes).all())
        held = Held()
        record = ScaleRecord(
            source_row=source,
            target_row=target,
            sources=held.at(sources),
            targets=held.at(targets),
            rows=len(rows),
            source_places=held.at(rows),
            repeats=repeats,
            target_places=held.at(box),
            decode=decode,
            lane_bytes=setting.step_bytes(source),
            eps=held.at(np.array([self.eps])),
            one=held.at(np.ones(1)),
            store=ROUNDERS[setting.codec(target).storage.value].address,
            repeat=copier(setting.codec(target).word_bytes, NO_TABLE) if is_adjacent else 0,
            result_bytes=result_bytes,
        )
        boxes = len(sources)
        return BoundCalls([KernelStep.of(scale_step, record, held, boxes, boxes * len(box))])
