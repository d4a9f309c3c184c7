from collections.abc import Callable, Mapping, Sequence
from typing import overload

from . import Node

@overload
def map_arg(a: Sequence[object], fn: Callable[[Node], object]) -> Sequence[object]: ...
@overload
def map_arg(a: Mapping[str, object], fn: Callable[[Node], object]) -> Mapping[str, object]: ...
