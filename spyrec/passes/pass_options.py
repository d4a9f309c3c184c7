"""The options of passes by name, as ``--pass NAME=option:value,...`` gives them and ``spyrec passes`` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.target import PROFILES, TARGETS
from spyrec.passes.base import NO_PLANNER, PipelineOptions
from spyrec.passes.pipelines import COMPILE, AnyPass
from spyrec.passes.solvers.scratchpad_packing import PLANNERS, checked_planner

_MOST_NUMBER = 1 << 20
_SHOWN = 60


class OptionKind(Enum):
    """What the value of an option is."""

    FLAG = "true or false"
    NUMBER = "a number"
    NAME = "a name"
    GROUPS = "not given by hand"


@dataclass(frozen=True, slots=True)
class PassOption:
    """An option: the field of :class:`PipelineOptions` that it sets, what it says, and the names that it may have."""

    field: str
    kind: OptionKind
    summary: str
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The option as it is written: ``lx-planner``."""
        return self.field.replace("_", "-")

    @property
    def values(self) -> str:
        """What may be given, in words."""
        return "|".join(self.names) if self.names else self.kind.value

    @property
    def default(self) -> str:
        """Its value where none is given, as it is written."""
        found: object = getattr(PipelineOptions(), self.field)
        if isinstance(found, bool):
            return "true" if found else "false"
        return str(getattr(found, "name", found)) if found != () else "none"


OPTIONS: dict[str, PassOption] = {
    item.field: item
    for item in (
        PassOption("target", OptionKind.NAME, "the device whose limits hold", tuple(TARGETS)),
        PassOption("cores", OptionKind.NUMBER, "most cores that one operation is divided among"),
        PassOption("fixed_io_layouts", OptionKind.FLAG, "inputs and outputs keep their default layouts"),
        PassOption("spare_arguments", OptionKind.NUMBER, "arguments that each loop leaves free for copies"),
        PassOption("auto_tile", OptionKind.FLAG, "whether loops may be chosen where a graph asks for none"),
        PassOption("lx_planner", OptionKind.NAME, "what packs the scratchpads", (*PLANNERS, NO_PLANNER)),
        PassOption("tile_groups", OptionKind.GROUPS, "the loops that auto-tile chose"),
        PassOption("profile", OptionKind.NAME, "parameters of the times that plans are compared by", tuple(PROFILES)),
        PassOption("symbolic_args", OptionKind.FLAG, "addresses are parameters of the programs"),
        PassOption("has_shuffles", OptionKind.FLAG, "tensors may move from scratchpad to scratchpad"),
        PassOption(
            "counts_on_lx", OptionKind.FLAG, "divisions count on shuffles, and may cost time to keep tensors in LX"
        ),
        PassOption("has_windows", OptionKind.FLAG, "pools and convolutions may be operations of the device"),
    )
}
"""Field of the options -> what is said of it."""


@dataclass(frozen=True, slots=True)
class ChosenPass:
    """A pass that is to run, with its options as text: ``(("cores", "8"),)``."""

    item: AnyPass
    settings: tuple[tuple[str, str], ...] = ()

    def options(self, common: PipelineOptions) -> PipelineOptions:
        """Return the common options with the pass's own.  Errors: SPY0414, SPY0415."""
        for name, text in self.settings:
            common = _with_option(self.item, common, name, text)
        return common


def pass_named(name: str) -> AnyPass:
    """Return the pass of that name.  Errors: SPY0413."""
    names = [item.name for item in COMPILE]
    if name not in names:
        close = get_close_matches(name[:_SHOWN], names, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"one of {', '.join(names)}"
        raise refuse("SPY0413", f'there is no pass "{name[:_SHOWN]}"', hint=hint)
    return COMPILE[names.index(name)]


def chosen_pass(text: str) -> ChosenPass:
    """Return what ``NAME`` or ``NAME=option:value,option:value`` says.  Errors: SPY0413, SPY0415."""
    name, has_options, rest = text.partition("=")
    item = pass_named(name)
    if not has_options:
        return ChosenPass(item)
    pairs = [part.partition(":") for part in rest.split(",")]
    wrong = next((option for option, colon, value in pairs if not option or not colon or not value), None)
    if wrong is not None:
        raise _refused(item, f'"{rest[:_SHOWN]}" is no list of option:value')
    settings = tuple((option, value) for option, _, value in pairs)
    ChosenPass(item, settings).options(PipelineOptions())  # refused before anything is read
    return ChosenPass(item, settings)


def _with_option(item: AnyPass, common: PipelineOptions, name: str, text: str) -> PipelineOptions:
    known = {OPTIONS[field].name: OPTIONS[field] for field in item.options}
    option = known.get(name)
    if option is None or option.kind is OptionKind.GROUPS:
        close = get_close_matches(name[:_SHOWN], known, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"its options: {', '.join(known) or 'none'}"
        raise _refused(item, f'it has no option "{name[:_SHOWN]}"', hint)
    changed = replace(common, **{option.field: _value(item, option, text)})
    if changed.cores > changed.target.cores:
        raise _refused(item, f'cores is {changed.cores}, target "{changed.target.name}" has {changed.target.cores}')
    return changed


def _value(item: AnyPass, option: PassOption, text: str) -> object:
    match option.kind:
        case OptionKind.FLAG if text in ("true", "false"):
            return text == "true"
        case OptionKind.NUMBER if text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_NUMBER)):
            least = 1 if option.field == "cores" else 0
            if least <= int(text) <= _MOST_NUMBER:
                return int(text)
        case OptionKind.NAME if text in option.names:
            return _named(option, text)
        case _:
            pass
    raise _refused(item, f'{option.name} is "{text[:_SHOWN]}", it is {option.values}')


def _named(option: PassOption, text: str) -> object:
    if option.field == "target":
        return TARGETS[text]
    if option.field == "profile":
        return PROFILES[text]
    if text != NO_PLANNER:
        checked_planner(text)
    return text


def _refused(item: AnyPass, fact: str, hint: str | None = None) -> SpyrecError:
    return refuse("SPY0415", f"pass {item.name}: {fact}", hint=hint or f"`spyrec passes {item.name}` lists its options")


def options_of(fields: Sequence[str]) -> list[PassOption]:
    """Return the options of these fields, in order."""
    return [OPTIONS[field] for field in fields]
