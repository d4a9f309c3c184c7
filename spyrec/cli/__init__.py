"""The command line: a click group that finds its verbs as files of this folder.

File ``foo_bar.py`` is the verb ``foo-bar`` and holds one click command named ``command``; a file whose name begins
with an underscore is no verb.  Only the chosen verb is imported, so that ``spyrec --help`` answers at once.

Exit codes: 0 done; 1 the input was refused, results differ or a check failed; 2 usage; 70 a bug in spyrec; 130
interrupted; 141 the reader of stdout has gone.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click

from spyrec import __version__
from spyrec.cli._console import Console, DiagnosticsFormat
from spyrec.cli._failures import broken_pipes_renamed, exit_code_of_failure, open_closed_streams
from spyrec.cli._help_examples import HELP_EXAMPLES

_FOLDER = Path(__file__).parent

_OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""New containers after which Python looks for garbage while a verb works: by itself it does so at every 700."""


def verbs() -> list[str]:
    """Return the names of all verbs, sorted."""
    modules = (info.name for info in iter_modules([str(_FOLDER)]))
    return sorted(name.replace("_", "-") for name in modules if not name.startswith("_"))


class VerbGroup(click.Group):
    """The group whose commands are the files of this folder."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Read the arguments; ``--help`` and ``--version`` print here."""
        with broken_pipes_renamed():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Call the verb."""
        with broken_pipes_renamed():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the names of all verbs, sorted."""
        return verbs()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- as above
        """Import one verb, or return ``None`` where there is none of that name."""
        if cmd_name not in verbs():
            return None
        command = import_module(f"spyrec.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        known = {item.name for item in command.params}
        command.params.extend(option for option in _message_options() if option.name not in known)
        if command.epilog is None and cmd_name in HELP_EXAMPLES:
            command.epilog = f"Example: {HELP_EXAMPLES[cmd_name]}"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that is meant; of one that there is not, say which one is close."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from spyrec.diagnostics.near_names import nearest

            meant = nearest(args[0], verbs())
            if meant is None or meant == args[0]:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}; did you mean {meant}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- as above
        """Write the list of verbs without importing them: the first line of each file's docstring."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, _first_docstring_line(verb)) for verb in verbs()])


def _first_docstring_line(verb: str) -> str:
    source = (_FOLDER / f"{verb.replace('-', '_')}.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    line = docstring.partition("\n")[0]
    return line.partition(": ")[2] or line


def _choose_messages(ctx: click.Context, parameter: click.Parameter, value: str | bool | None) -> None:
    console = ctx.find_object(Console)
    assert console is not None
    if isinstance(value, str):
        console.diagnostics_format = DiagnosticsFormat(value)
    elif value and parameter.name == "quiet":
        console.is_quiet = True
    elif value:
        console.is_verbose = True


def _message_options() -> list[click.Option]:
    """Return the options of messages, which may stand before the verb or after it.

    They have callbacks, and so hold for an unknown verb and for usage errors too.
    """
    formats = click.Choice([item.value for item in DiagnosticsFormat])
    said = "How messages are written to stderr: text, or one JSON object per line."
    options = [
        click.Option(["--diagnostics"], type=formats, help=said),
        click.Option(["-v", "--verbose"], is_flag=True, help="Say on stderr what is done, and in how long."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Leave out warnings, notes and progress."),
    ]
    for option in options:
        option.expose_value, option.is_eager, option.callback = False, True, _choose_messages
    return options


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spyrec")
def group() -> None:
    """Compile graphs for the Spyre accelerator, and run the bundles on an emulated device."""


group.params.extend(_message_options())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and return its exit code; nothing is raised."""
    open_closed_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    console = Console()
    return exit_code_of_failure(lambda: _run(arguments, console), console, arguments)


def _run(arguments: list[str], console: Console) -> int:
    invoke: Callable[..., object] = group.main
    with _rare_collections():
        result = invoke(args=arguments, prog_name="spyrec", standalone_mode=False, obj=console)
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


@contextmanager
def _rare_collections() -> Generator[None]:
    """Let Python look for garbage less often inside, unless it was told when to.

    What is imported stays: to look through it again and again is a tenth of the time of a short run.
    """
    first, *others = gc.get_threshold()
    if 0 < first < _OBJECTS_BETWEEN_COLLECTIONS:
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
