"""What an OpSpec says of a window that slides: its parameters, and the extents of the result."""

from __future__ import annotations

from spyrec.codegen.opspec import OpInfo
from spyrec.codegen.windows import SUFFIX_OF_AXIS
from spyrec.device_ops.record import WindowForm
from spyrec.ir.kernel import Kernel
from spyrec.ir.sliding import Slide, Window

_KIND = "padded_fullspan_wunneeded"
"""What a depthwise convolution says of padding: code generation then tells that memory does not hold it."""


def window_info(kernel: Kernel, window: Window) -> OpInfo:
    """Return the parameters of a window, where its form has them."""
    axes = dict(zip(SUFFIX_OF_AXIS, window.slides, strict=True))
    if window.form is WindowForm.DEPTHWISE:
        return OpInfo(conv_params={**_of_depthwise(kernel, axes), "pad_type": _KIND})
    names = ("kernel", "stride", "pad")
    values = {
        f"{name}_{SUFFIX_OF_AXIS[axis]}": number
        for name in names
        for axis, slide in axes.items()
        for number in [{"kernel": kernel.extents[slide.tap], "stride": slide.stride, "pad": slide.front}[name]]
    }
    if window.form is WindowForm.POOL:
        return OpInfo(constants={**values, "scaling_factor": kernel.constants["nmap"]})
    return OpInfo(conv_params=values | {f"dil_{SUFFIX_OF_AXIS[axis]}": slide.dilation for axis, slide in axes.items()})


def _of_depthwise(kernel: Kernel, axes: dict[str, Slide]) -> dict[str, int]:
    found: dict[str, int] = {}
    for axis, slide in axes.items():
        found[f"stride_{axis}"], found[f"pad_{axis}"] = slide.stride, slide.front
        found[f"dilation_{axis}"] = slide.dilation
        found[f"total_size_{axis}"] = slide.extent + 2 * slide.front
        found[f"kernel_{SUFFIX_OF_AXIS[axis]}"] = kernel.extents[slide.tap]
    return found


def output_ranges(kernel: Kernel, window: Window) -> tuple[int, int, int, int]:
    """Return samples, channels, rows and columns of the result."""
    rows, columns = (kernel.extents[slide.output] for slide in window.slides)
    return kernel.extents[window.samples], kernel.extents[window.channels], rows, columns
