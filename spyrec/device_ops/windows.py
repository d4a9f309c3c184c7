"""Operations that slide a window over rows and columns: average pool and two convolutions.

What they take and give: section 5 of the format of August 2026.  ``nmap`` is what a pool multiplies its sums by, the
reciprocal of the window's area.
"""

from __future__ import annotations

from spyrec.device_ops.folds import SUM
from spyrec.device_ops.record import (
    HALF,
    DeviceOperation,
    ErrorBehaviour,
    ErrorKind,
    Family,
    Fold,
    WindowForm,
)


def _window(name: str, summary: str, form: WindowForm, *, scale: str | None, cores_combine: bool) -> DeviceOperation:
    is_pool = form is WindowForm.POOL
    return DeviceOperation(
        name=name,
        summary=summary,
        family=Family.WINDOW,
        outer_name=None,
        inputs=1 if is_pool else 2,
        optional_inputs=0,
        constants=() if scale is None else (scale,),
        accepts=HALF,
        gives=HALF,
        is_uniform=True,
        vector_passes=1,
        flops=1 if is_pool else 2,
        error=ErrorBehaviour(ErrorKind.TOTAL if is_pool else ErrorKind.CONTRACTION),
        unary=None,
        pointwise=None,
        fold=Fold(
            accumulators=(SUM,),
            mask=0.0,
            join="add",
            combination="sum",
            is_split_exact=False,
            is_average=scale is not None,
            scale=scale,
            cores_combine=cores_combine,
            least_tile=1,
            folds_sticks=form is WindowForm.CONVOLUTION,
        ),
        padding_mask=None,
        window=form,
    )


OPERATIONS = (
    _window("avgpoolfwd", "mean over a window", WindowForm.POOL, scale="nmap", cores_combine=False),
    # cores may have parts of the input channels, never of the window
    _window("conv2d", "convolution", WindowForm.CONVOLUTION, scale=None, cores_combine=True),
    _window(
        "depthwiseconv2dnative",
        "convolution of each channel by itself",
        WindowForm.DEPTHWISE,
        scale=None,
        cores_combine=False,
    ),
)
