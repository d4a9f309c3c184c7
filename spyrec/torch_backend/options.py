"""The options that ``torch.compile(..., options={...})`` takes for this backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import cast

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.model_import import ImportDType, check_dtype


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """``dtype``: what the floats of a graph become; ``fallback``: torch computes what a graph does not have."""

    dtype: ImportDType = "float16"
    fallback: bool = True

    @classmethod
    def of(cls, given: Mapping[str, object]) -> BackendOptions:
        """Return the options of a mapping.  Errors: SPY0771."""
        names = [item.name for item in fields(cls)]
        for name in given:
            if name not in names:
                raise refuse("SPY0771", f"there is no option {name!r:.60}, and the options are {', '.join(names)}")
        dtype, fallback = given.get("dtype", "float16"), given.get("fallback", True)
        check_dtype(str(dtype))
        if not isinstance(fallback, bool):
            raise refuse("SPY0771", f"fallback is {fallback!r:.60}, and the choices are True, False")
        return cls(cast("ImportDType", dtype), fallback)
