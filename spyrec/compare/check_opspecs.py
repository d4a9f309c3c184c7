"""``--check`` of a bundle without a graph: its outputs against the float64 evaluation of its own OpSpecs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spyrec.bundle.bundle_content import OPSPECS_FILE, BundleContent
from spyrec.bundle.manifest import Argument
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.compare.opspec_reference import Estimate, OpSpecEvaluation
from spyrec.compare.storage import Array
from spyrec.compare.verdict import FAILING_RATIO, CheckReport, WorstElement
from spyrec.runtime.inputs.binding import chosen_extents, expected_inputs, in_whole_buffer


def check_opspecs(
    bundle: BundleContent, inputs: Mapping[str, Array], outputs: Mapping[str, Array], numerics: str = "dl16"
) -> dict[str, CheckReport]:
    """Compare each output, in device form, with what the OpSpecs give for the inputs; elements nobody wrote are left.

    The operations have the sizes of the run: those that the inputs' shapes and the bundle's dims say.
    Errors: SPY05xx for ``opspecs.json``, SPY0548 an operation that is not evaluated.
    """
    assert bundle.opspecs_json is not None
    expected = expected_inputs(bundle.manifest)
    taken = {item.name: item.as_taken(inputs[item.name]) for item in expected}
    sizes = chosen_extents(taken, expected, bundle.manifest.symbolic_dims)
    evaluation = OpSpecEvaluation(read_opspecs(bundle.opspecs_json, OPSPECS_FILE), numerics, sizes)
    arguments = {item.name: item for item in bundle.manifest.arguments}
    for given in expected:
        item = arguments[given.name]
        assert item.arg_index is not None, "arguments of OpSpecs have an index"
        evaluation.give(item.arg_index, item.device_dtype, given.in_whole(taken[given.name]))
    evaluation.run()
    return {result: _report(evaluation, arguments[name], outputs[result]) for result, name in bundle.manifest.outputs}


def _report(evaluation: OpSpecEvaluation, argument: Argument, got: Array) -> CheckReport:
    assert argument.arg_index is not None
    whole = got if got.shape == argument.device_size else in_whole_buffer(got, argument.device_size)
    found = _resized(evaluation.result(argument.arg_index), whole.size)
    have = whole.ravel().astype(np.float64)
    is_written = ~np.isnan(found.error)
    with np.errstate(all="ignore"):
        error = np.abs(have - found.value)
        agrees = (have == found.value) | (~np.isfinite(have) & ~np.isfinite(found.value))
        error = np.where(agrees | ~is_written, 0.0, np.where(np.isfinite(error), error, np.inf))
        bound = np.where(is_written, found.error, np.inf)
        ratio = np.where(error == 0, 0.0, np.where(np.isinf(bound), 0.0, error / bound))
        ratio = np.where((bound == 0) & (error > 0), np.inf, ratio)
    failed = ratio > FAILING_RATIO
    worst = int(np.argmax(ratio)) if ratio.size else 0
    place = tuple(int(i) for i in np.unravel_index(worst, argument.device_size))
    finite = np.isfinite(found.value) & is_written & np.isfinite(error)
    sizes = np.abs(found.value[finite])
    relative = error[finite] / np.where(sizes == 0, 1.0, sizes)
    return CheckReport(
        ok=not failed.any(),
        max_abs=float(error[finite].max(initial=0.0)),
        max_rel=float(relative.max(initial=0.0)),
        bound_ratio=float(ratio.max(initial=0.0)),
        worst=WorstElement(place, float(have[worst]), float(found.value[worst]), place),
        element_count=int(is_written.sum()),
        bounded_elements=int((is_written & np.isfinite(bound)).sum()),
        failed_elements=int(failed.sum()),
    )


def _resized(found: Estimate, count: int) -> Estimate:
    lacking = max(0, count - found.value.size)
    value = np.append(found.value, np.zeros(lacking))[:count]
    return Estimate(value, np.append(found.error, np.full(lacking, np.nan))[:count])
