"""``spyrec inspect-layout``: show where the elements of a tensor, a graph or a bundle lie in device memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spyrec.cli._console import current_console
from spyrec.cli._fitted import say
from spyrec.cli._paths import OutputPath
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, located

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spyrec.bundle.bundle import Bundle
    from spyrec.cli._graph_layouts import GraphLayouts, GraphValue
    from spyrec.cli._layout_text import NamedLayout, Questions


@dataclass(frozen=True, slots=True)
class _Shape:
    """The tensor that the options describe."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None
    dim_order: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class _Picture:
    """Where the picture is written, and whether over any file."""

    path: Path
    force: bool

    def refuse_unwritable(self) -> None:
        """Refuse a place that cannot be written, before any work is done."""
        from spyrec.files.file_kinds import PICTURE
        from spyrec.files.whole_file import refuse_unwritable

        refuse_unwritable(self.path, PICTURE, force=self.force)

    def write(self, svg: str) -> None:
        """Write the picture, behind the mark by which spyrec knows it again."""
        from spyrec.files.file_kinds import PICTURE, PICTURE_MARK
        from spyrec.files.whole_file import write_file

        write_file(self.path, PICTURE, f"{PICTURE_MARK}\n{svg}".encode(), force=self.force)


class _Integers(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] -- generic only in the newest click
    """A list of integers, ``5,100,150``; an empty text is the empty list."""

    name = "i,j,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the integers; a usage error for anything else."""
        if not isinstance(value, str):
            self.fail(f"{value!r} is not text", param, ctx)
        try:
            return tuple(int(part) for part in value.split(",")) if value.strip() else ()
        except ValueError:
            self.fail(f'"{value}" is not a list of integers', param, ctx)


class _Address(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] -- generic only in the newest click
    """A byte address, decimal or ``0x...``."""

    name = "N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the address; a usage error for what is no number or negative."""
        try:
            address = int(str(value), 0)
        except ValueError:
            self.fail(f'"{value}" is not an address', param, ctx)
        if address < 0:
            self.fail(f"{address} is negative", param, ctx)
        return address


@click.command(name="inspect-layout")
@click.argument("path", required=False, type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("--shape", type=_Integers(), help="Inspect the layout of a tensor of this shape.")
@click.option("--dtype", default="float16", show_default=True, help="PyTorch name of its dtype.")
@click.option("--stride", type=_Integers(), help="Host strides in elements; default row-major.")
@click.option("--dim-order", type=_Integers(), help="Order of the dims, stick last; -1 at the end for a sparse tensor.")
@click.option("--at", type=_Integers(), help="Map this host index to its device coordinate and address.")
@click.option("--at-address", type=_Address(), help="Map this byte address back to its element.")
@click.option("--tensor", help="With a graph or bundle: this tensor only.")
@click.option("--fixed-io-layouts", is_flag=True, help="With a graph: keep the default layouts of inputs and outputs.")
@click.option("--lx", "is_lx", is_flag=True, help="With a bundle: what lies in the scratchpads when.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--svg", type=OutputPath(is_file=True), help="Write a picture of the sticks.")
@click.option("--force", is_flag=True, help="Replace a picture that spyrec did not write.")
def command(  # noqa: PLR0913 -- one parameter per option of the verb
    *,
    path: Path | None,
    shape: tuple[int, ...] | None,
    dtype: str,
    stride: tuple[int, ...] | None,
    dim_order: tuple[int, ...] | None,
    at: tuple[int, ...] | None,
    at_address: int | None,
    tensor: str | None,
    fixed_io_layouts: bool,
    is_lx: bool,
    as_json: bool,
    svg: Path | None,
    force: bool,
) -> int:
    """Show device_size, stride_map, padding, sticks and copy loops of --shape, or of the tensors of PATH.

    PATH is a bundle directory, or a graph file: of a graph every value is shown as the compiler lays it out, views and
    inserted copies too, with what the copies cost.  --lx shows the scratchpads of a bundle, operation by operation.
    """
    from spyrec.cli import _layout_text as text

    if as_json:
        current_console().object_format = "spyrec.lx/1" if is_lx else "spyrec.layouts/1"
    if (path is None) == (shape is None):
        raise click.UsageError("give --shape, or the path of a graph or bundle")
    place, notes = _asked(
        {"shape": shape, "stride": stride, "dim-order": dim_order, "at": at, "at-address": at_address}, path
    )
    picture = None if svg is None else _Picture(svg, force)
    with located(place, notes):
        if picture is not None:
            picture.refuse_unwritable()
        if is_lx:
            _refuse_with_lx(path, asks=bool(notes) or tensor is not None or fixed_io_layouts)
            assert path is not None
            _show_lx(path, picture, as_json=as_json)
            return 0
        questions = text.Questions(at, at_address)
        if path is not None and not path.is_dir():
            found = _of_graph(
                _Graph(path, tensor, fixed_io_layouts=fixed_io_layouts), questions, picture, as_json=as_json
            )
            click.echo(found) if as_json else say(found)
            return 0
        if shape is not None:
            named = [_of_shape(_Shape(shape, dtype, stride, dim_order))]
        else:
            assert path is not None
            named = _of_path(path, tensor)
        if picture is not None:
            _write_svg(picture, named)
        if as_json:
            click.echo(json.dumps(text.to_json(named, questions), indent=2))
            return 0
        say(text.describe(named[0], questions) if len(named) == 1 else text.table(named, questions))
        return 0


def _refuse_with_lx(path: Path | None, *, asks: bool) -> None:
    if path is None or not path.is_dir():
        raise click.UsageError("--lx shows the scratchpads of a bundle: give its directory")
    if asks:
        raise click.UsageError("--lx shows whole programs: it takes --json and --svg only")


def _show_lx(path: Path, picture: _Picture | None, *, as_json: bool) -> None:
    """Print the map of a bundle's scratchpads, and draw it where a picture is asked for."""
    from spyrec.bundle.bundle import Bundle
    from spyrec.cli import _lx_map_svg, _lx_map_text
    from spyrec.compare.lx_map import lx_maps

    maps = lx_maps(Bundle.load(path))
    if picture is not None:
        picture.write(_lx_map_svg.draw(maps))
    if as_json:
        click.echo(json.dumps(_lx_map_text.to_json(maps), indent=2))
        return
    if not maps:
        say("nothing lies in the scratchpads")
    for number, found in enumerate(maps):
        say("\n".join([*([""] if number else []), *_lx_map_text.draw_text(found)]))


def _asked(options: Mapping[str, tuple[int, ...] | int | None], path: Path | None) -> tuple[Location, tuple[str, ...]]:
    """Return what a refusal without a place of its own is about: the path if there is one, and the options given."""
    given = {name: value for name, value in options.items() if value is not None}
    texts = {
        name: f"--{name} {value if isinstance(value, int) else ','.join(map(str, value))}"
        for name, value in given.items()
    }
    if path is not None:
        return Location(str(path)), tuple(f"asked with {text}" for text in texts.values())
    return Location(" ".join(texts.values())), ()


def _of_shape(tensor: _Shape) -> NamedLayout:
    from spyrec.cli._layout_text import NamedLayout
    from spyrec.layout.device_layout import DeviceLayout

    layout = DeviceLayout.default(tensor.shape, tensor.dtype, tensor.stride, tensor.dim_order)
    return NamedLayout("tensor", layout, 0, None)


def _of_path(path: Path, tensor: str | None) -> list[NamedLayout]:
    from spyrec.bundle.bundle import Bundle
    from spyrec.diagnostics import refuse
    from spyrec.diagnostics.near_names import one_of

    named = _of_bundle(Bundle.load(path))
    if tensor is not None:
        chosen = [item for item in named if item.name == tensor]
        if not chosen:
            hint = one_of(tensor, [item.name for item in named], "it holds")
            raise refuse("SPY0321", f'{path} holds no tensor "{tensor}" in device memory', hint=hint)
        return chosen
    if not named:
        raise refuse("SPY0321", f"{path} holds no tensor in device memory")
    return named


@dataclass(frozen=True, slots=True)
class _Graph:
    """The graph to lay out: its file, the one value asked for, and whether inputs and outputs keep their defaults."""

    path: Path
    value: str | None
    fixed_io_layouts: bool


def _of_graph(graph: _Graph, questions: Questions, picture: _Picture | None, *, as_json: bool) -> str:
    """Return what is to be said of a graph: it has the layouts that the compiler gives it."""
    from spyrec.cli import _graph_layout_text as text
    from spyrec.cli._graph_layouts import graph_layouts, staged_layouts
    from spyrec.front import schedule
    from spyrec.ir.graph import Graph
    from spyrec.ir.parts import Staged
    from spyrec.options import CompileOptions

    options = CompileOptions(fixed_io_layouts=graph.fixed_io_layouts)
    kernels = schedule(graph.path, options, graph.path.parent, warn=lambda warning: current_console().emit([warning]))
    assert not isinstance(kernels, Graph), "a whole pipeline ends in kernels"
    layouts = staged_layouts(kernels) if isinstance(kernels, Staged) else graph_layouts(kernels)
    values = list(layouts.values) if graph.value is None else [_value_of(layouts, graph)]
    said = json.dumps(text.to_json(layouts, values, questions), indent=2) if as_json else None
    if said is None:
        said = text.table(layouts, questions) if graph.value is None else text.describe_value(values[0], questions)
    if picture is not None:
        named = [text.as_named(value) for value in values]
        _write_svg(picture, [item for item in named if item is not None])
    return said


def _value_of(layouts: GraphLayouts, graph: _Graph) -> GraphValue:
    from spyrec.diagnostics import refuse
    from spyrec.diagnostics.near_names import one_of

    for value in layouts.values:
        if value.name == graph.value:
            return value
    hint = one_of(str(graph.value), [value.name for value in layouts.values], "it has")
    raise refuse("SPY0321", f'{graph.path} has no value "{graph.value}"', hint=hint)


def _of_bundle(bundle: Bundle) -> list[NamedLayout]:
    from spyrec.cli._layout_text import NamedLayout
    from spyrec.layout.device_layout import DeviceLayout

    named: list[NamedLayout] = []
    for argument in bundle.manifest.arguments:
        stride_map = argument.stride_map
        if stride_map is None or 0 in argument.device_size:
            continue
        layout = DeviceLayout(
            argument.device_size,
            stride_map,
            argument.device_dtype,
            argument.shape,
            argument.host_strides,
            argument.dtype,
        )
        named.append(NamedLayout(argument.name, layout, argument.address or 0, argument.role.value))
    return named


def _write_svg(picture: _Picture, named: list[NamedLayout]) -> None:
    from spyrec.cli._layout_svg import draw

    if len(named) != 1:
        raise click.UsageError("--svg draws one tensor: choose it with --tensor")
    picture.write(draw(named[0].layout))
