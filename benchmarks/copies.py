"""Host/device copies through conversion tables, beside ``numpy.copyto`` of the same bytes; claim: at least 0.8.

One thread's processor time, the least of many rounds while others used the machine (Zen 4, h2d and d2h of copyto):
with AVX-512 large ones 1.1 to 1.3 and 0.8 to 0.9, ``batch`` 1.3 and 1.5, ``ragged`` 0.8 to 1.0 and 0.8 to 1.1 (others
took its cache), ``small`` 0.79 to 0.83 and 0.84 to 0.88; with AVX2 forced the same but ``ragged``, 0.74 to 1.05 and
0.84 to 1.15, and ``small``, 0.72 and 0.71 to 0.76.  What bounds that one: its 400 KB lie in the second cache,
where a copy of bytes takes 10 us.  The kernel takes 0.5 us more with AVX-512, where a stick is 22 instructions and a
copy of it 8, and 2 us more with AVX2, where they are 42 and 12; the call around it 1.8 us of Python, 2.5 to 3 where
a copy has just displaced what Python reads.

Device memory begins as the emulated device's does, results as those of runs do.  ``d2h`` writes into memory that is at
hand, as ``copyto`` does; ``d2h_new`` also asks for a new array, whose pages the system has to clear first.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Figures, interleaved, rounded
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.host_copies.result_memory import ResultMemory
from spyrec.runtime.host_copies.transfer import copy_into_host, copy_to_device, copy_to_host
from spyrec.runtime.memory.addresses import AddressRange, VirtualAddress
from spyrec.runtime.memory.lazy_memory import LazyMemory

_SHAPES = {
    "rows_4096x4096": (4096, 4096),
    "flat_16777216": (1 << 24,),
    "heads_2048x32x256": (2048, 32, 256),
    "batch_8x512x1024": (8, 512, 1024),
    "ragged_1000x3000": (1000, 3000),
    "small_200x1000": (200, 1000),
}


def measure() -> Figures:
    """Return, per shape, milliseconds of both directions and their speed beside a plain copy of the host bytes."""
    figures: Figures = {}
    for name, shape in _SHAPES.items():
        layout = DeviceLayout.default(shape, "float16")
        into, back = layout.dci("h2d"), layout.dci("d2h")
        host = np.random.Generator(np.random.PCG64(0)).standard_normal(shape, dtype=np.float32).astype(np.float16)
        place = AddressRange(VirtualAddress(0, 0), layout.nbytes)
        device = LazyMemory()
        device.attach(place)
        memory = device.view(place)
        target = ResultMemory().array(shape, np.float16)
        seconds = interleaved(
            {
                "h2d": lambda: copy_to_device(host, into, memory),  # noqa: B023 -- called within this turn
                "d2h": lambda: copy_into_host(memory, back, target.reshape(-1)),  # noqa: B023
                "d2h_new": lambda: copy_to_host(memory, back, shape, DType.FLOAT16),  # noqa: B023
                "copyto": lambda: np.copyto(target, host),  # noqa: B023
            },
            rounds=9,
        )
        figures[name] = {
            **{f"{way}_ms": rounded(seconds[way] * 1e3) for way in seconds},
            "h2d_speed_ratio": rounded(seconds["copyto"] / seconds["h2d"]),
            "d2h_speed_ratio": rounded(seconds["copyto"] / seconds["d2h"]),
            "d2h_new_speed_ratio": rounded(seconds["copyto"] / seconds["d2h_new"]),
            "claim": "h2d_speed_ratio >= 0.8, d2h_speed_ratio >= 0.8",
        }
    return figures
