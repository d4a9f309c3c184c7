"""Which loops a buffer is per tile in, and the full copy of what is needed both inside and outside of its loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.ir.access import Access
from spyrec.ir.graph import Derived
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, Use, copy_kernel
from spyrec.passes.tile_loops.accumulation import PASS_NAME, output_dims
from spyrec.passes.tile_loops.tree import Body, LoopNode, Serials, TiledKernel, kernels_of


@dataclass(frozen=True, slots=True)
class _Users:
    """The kernels that write and read one buffer, each with the loops around it."""

    writers: list[tuple[TiledKernel, Serials]]
    readers: list[tuple[TiledKernel, Serials]]


def per_tile_depths(body: Body, buffers: Mapping[str, KernelBuffer]) -> dict[str, int]:
    """Return, for each buffer that lives inside loops, in how many of its outermost loops it holds one tile only.

    Those are the loops that everything shares which writes or reads it.  A buffer whose only reader is a copy that may
    be dropped stays full: its producer then writes the copy's target in place.
    """
    depths: dict[str, int] = {}
    for name, users in _users(body).items():
        buffer = buffers[name]
        if buffer.role is not BufferRole.INTERMEDIATE or buffer.pin is not None or _is_elided(users):
            continue
        paths = [path for _, path in (*users.writers, *users.readers)]
        depth = len(common(paths))
        if depth:
            depths[name] = depth
    return depths


def _is_elided(users: _Users) -> bool:
    return bool(users.readers) and all(item.kernel.is_elidable for item, _ in users.readers)


def _users(body: Body) -> dict[str, _Users]:
    found: dict[str, _Users] = {}
    for item, path in kernels_of(body):
        for use in item.kernel.inputs:
            found.setdefault(use.buffer, _Users([], [])).readers.append((item, path))
        found.setdefault(item.kernel.output.buffer, _Users([], [])).writers.append((item, path))
    return found


def common(paths: Sequence[Serials]) -> Serials:
    """Return the loops that all paths share, from the outside in."""
    count = 0
    for places in zip(*paths, strict=False):
        if len(set(places)) > 1:
            break
        count += 1
    return paths[0][:count]


def with_full_copies(body: list[LoopNode | TiledKernel], buffers: dict[str, KernelBuffer]) -> None:
    """Part what is needed inside and outside of the loops it is made in: a tile, and a copy into the full buffer.

    ``loop: y = f(x); z = g(y)  then  w = h(y)  -->  loop: y.tile = f(x); y = y.tile; z = g(y.tile)  then  w = h(y)``
    """
    for name, users in _users(body).items():
        if buffers[name].role is not BufferRole.INTERMEDIATE or len(users.writers) != 1:
            continue
        ((writer, path),) = users.writers
        shared = [len(common([path, other])) for _, other in users.readers]
        if not path or not shared or min(shared) == max(shared) or not _writes_all(writer.kernel, buffers[name]):
            continue
        tile = replace(buffers[name], name=f"{name}.tile", pin=None)
        buffers[tile.name] = tile
        readers = zip(users.readers, shared, strict=True)
        inside = {item.kernel.name for (item, _), depth in readers if depth == max(shared)}
        _rewrite(body, writer.kernel.name, inside, (name, tile))


def _writes_all(kernel: Kernel, buffer: KernelBuffer) -> bool:
    """Whether the kernel writes every element of the buffer."""
    whole = Access.identity(buffer.type.shape)
    return all(
        coordinate.offset == 0
        and [(term.coefficient, term.divisor, term.modulus) for term in coordinate.terms]
        == [(term.coefficient, term.divisor, term.modulus) for term in own.terms]
        for coordinate, own in zip(kernel.output.access.coordinates, whole.coordinates, strict=True)
    )


def _rewrite(
    body: list[LoopNode | TiledKernel], writer: str, inside: set[str], names: tuple[str, KernelBuffer]
) -> None:
    old, tile = names
    for place, item in reversed(list(enumerate(body))):
        if isinstance(item, LoopNode):
            _rewrite(item.body, writer, inside, names)
        elif item.kernel.name == writer:
            body[place] = replace(item, kernel=_writing(item.kernel, tile.name))
            body.insert(place + 1, _full_copy(item, old, tile))
        elif item.kernel.name in inside:
            body[place] = replace(item, kernel=_reading(item.kernel, old, tile.name))


def _writing(kernel: Kernel, buffer: str) -> Kernel:
    return replace(kernel, output=replace(kernel.output, buffer=buffer))


def _reading(kernel: Kernel, old: str, new: str) -> Kernel:
    inputs = tuple(replace(use, buffer=new) if use.buffer == old else use for use in kernel.inputs)
    return replace(kernel, inputs=inputs)


def _full_copy(writer: TiledKernel, name: str, tile: KernelBuffer) -> TiledKernel:
    kernel, shape = writer.kernel, tile.type.shape
    whole = Access.identity(shape)
    dims = output_dims(kernel, len(shape))
    origin = Derived(PASS_NAME, (kernel.origin,))
    copy = replace(
        copy_kernel(f"{name}.full", Use(tile.name, whole), Use(name, whole), origin),
        reason=f'"{name}" is needed inside and outside of the loops it is made in',
        dims=dims,
    )
    tiled = [None if dim is None else kernel.dims[dim] for dim in writer.dims]
    return TiledKernel(copy, tuple(None if found is None else dims.index(found) for found in tiled))
