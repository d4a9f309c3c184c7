"""The part of safetensors.numpy that spyrec uses."""

from collections.abc import Mapping
from os import PathLike
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

AnyArray: TypeAlias = npt.NDArray[np.generic]

def save_file(
    tensor_dict: Mapping[str, npt.NDArray[np.generic]],
    filename: str | PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None: ...
def save(tensor_dict: Mapping[str, npt.NDArray[np.generic]], metadata: dict[str, str] | None = None) -> bytes: ...
def load_file(filename: str | PathLike[str]) -> dict[str, AnyArray]: ...
def load(data: bytes) -> dict[str, AnyArray]: ...
