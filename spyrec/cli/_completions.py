"""The scripts that complete command lines: made of the declared verbs, options and choices, and of nothing else.

A script holds all that it offers, so that a shell starts no Python at a key press.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import click

from spyrec.cli import group, verbs
from spyrec.dataclass import dataclass

_PASS = "PASS"


@dataclass(frozen=True, slots=True)
class Word:
    """An option: its names, what it says of itself, what it may be given; ``takes_value``: whether it is given any."""

    names: tuple[str, ...]
    summary: str
    takes_value: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: its name, summary, options, and what its arguments may be; files where that is empty."""

    name: str
    summary: str
    options: tuple[Word, ...]
    values: tuple[str, ...]


def declared_verbs() -> list[Verb]:
    """Return all verbs as they are declared, sorted."""
    context = click.Context(group, info_name="spyrec")
    found: list[Verb] = []
    for name in verbs():
        command = group.get_command(context, name)
        assert command is not None, name
        options = [_word(item, _values_of_option) for item in command.params if isinstance(item, click.Option)]
        help_option = Word(("--help",), "Show this message and exit.", takes_value=False, values=())
        arguments = [item for item in command.params if isinstance(item, click.Argument)]
        values = tuple(value for item in arguments for value in _choices(item) or _names_of(name))
        summary = (command.help or "").partition("\n")[0]
        found.append(Verb(name, summary, (*options, help_option), values))
    return found


def _word(option: click.Option, values: Callable[[click.Option], tuple[str, ...]]) -> Word:
    names = (*option.opts, *option.secondary_opts)
    return Word(names, option.help or "", takes_value=not option.is_flag and not option.count, values=values(option))


def _choices(parameter: click.Parameter) -> tuple[str, ...]:
    if not isinstance(parameter.type, click.Choice):
        return ()
    return tuple(str(choice) for choice in cast("click.Choice[str]", parameter.type).choices)


def _values_of_option(option: click.Option) -> tuple[str, ...]:
    """Return what an option may be given: its choices, the passes where one is due."""
    metavar = option.metavar or ""
    if option.name == "passes" or _PASS in metavar:
        from spyrec.passes.pipelines import COMPILE

        return (*(item.name for item in COMPILE), *(("all",) if "all" in metavar else ()))
    return _choices(option)


def _names_of(verb: str) -> tuple[str, ...]:
    """Return the names that the argument of a verb may be, where these are known."""
    match verb:
        case "explain":
            from spyrec.diagnostics.codes import CODES

            return tuple(sorted(CODES))
        case "ops":
            from spyrec.ir.op_docs import public_ops

            return tuple(definition.name for definition in public_ops())
        case "passes":
            from spyrec.passes.pass_docs import STEPS

            return tuple(step.name for step in STEPS)
        case "examples" | "schema":
            return _published(verb)
        case _:
            return ()


def _published(verb: str) -> tuple[str, ...]:
    from spyrec.cli._published import EXAMPLES, SCHEMA_SUFFIX, SCHEMAS, published_folder

    if verb == "examples":
        return tuple(sorted(path.parent.name for path in published_folder(EXAMPLES).glob("*/README.md")))
    files = published_folder(SCHEMAS).glob(f"*{SCHEMA_SUFFIX}")
    return tuple(sorted(path.name.removesuffix(SCHEMA_SUFFIX) for path in files))


def script(shell: str, known: Sequence[Verb]) -> str:
    """Return the script for bash, zsh or fish."""
    writers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return "\n".join(writers[shell](known)) + "\n"


def _group_options() -> tuple[Word, ...]:
    options = [_word(item, _choices) for item in group.params if isinstance(item, click.Option)]
    return (*options, Word(("-h", "--help"), "Show this message and exit.", takes_value=False, values=()))


def _names(options: Iterable[Word]) -> list[str]:
    return [name for option in options for name in option.names]


# --- bash ---


def _bash(known: Sequence[Verb]) -> Iterable[str]:
    """Words before the cursor say the verb; the one before it, whether an option's value is due."""
    yield "# completions of spyrec, made by `spyrec completion bash`"
    yield "_spyrec() {"
    yield "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= at"
    yield "  for (( at = 1; at < COMP_CWORD; at++ )); do"
    yield "    case ${COMP_WORDS[at]} in"
    yield "      --diagnostics) (( at++ )) ;;"
    yield "      -*) ;;"
    yield "      *) verb=${COMP_WORDS[at]}; break ;;"
    yield "    esac"
    yield "  done"
    yield "  local words= values= is_value="
    yield "  case $verb in"
    yield from _bash_case("''", _group_options(), [verb.name for verb in known])
    for verb in known:
        yield from _bash_case(verb.name, verb.options, verb.values)
    yield "  esac"
    yield "  if [[ -n $is_value && -n $values ]]; then words=$values; elif [[ -n $is_value ]]; then words=; fi"
    yield '  COMPREPLY=( $(compgen -W "$words" -- "$word") )'
    yield "  if [[ ${#COMPREPLY[@]} -eq 0 && $word != -* ]]; then"
    yield "    local IFS=$'\\n'"
    yield '    COMPREPLY=( $(compgen -f -- "$word") )'
    yield "  fi"
    yield "}"
    yield "complete -o filenames -F _spyrec spyrec"


def _bash_case(pattern: str, options: Sequence[Word], values: Sequence[str]) -> Iterable[str]:
    yield f"    {pattern})"
    yield f"      if [[ $word == -* ]]; then words={shlex.quote(' '.join(_names(options)))}"
    yield f"      else words={shlex.quote(' '.join(values))}; fi"
    valued = [option for option in options if option.takes_value]
    if valued:
        yield "      case $before in"
        for option in valued:
            yield f"        {'|'.join(option.names)}) is_value=1; values={shlex.quote(' '.join(option.values))} ;;"
        yield "      esac"
    yield "      ;;"


# --- zsh ---


def _zsh(known: Sequence[Verb]) -> Iterable[str]:
    yield "#compdef spyrec"
    yield "# completions of spyrec, made by `spyrec completion zsh`"
    yield "_spyrec() {"
    yield "  local context state line"
    yield "  local -a verbs"
    yield "  verbs=("
    for verb in known:
        yield f"    {shlex.quote(f'{verb.name}:{verb.summary}')}"
    yield "  )"
    yield "  _arguments -C \\"
    for option in _group_options():
        yield f"    {_zsh_option(option)} \\"
    yield "    '1: :->verb' '*:: :->rest'"
    yield "  case $state in"
    yield "    verb) _describe verb verbs ;;"
    yield "    rest)"
    yield "      case $line[1] in"
    for verb in known:
        yield f"        {verb.name})"
        yield "          _arguments \\"
        for option in verb.options:
            yield f"            {_zsh_option(option)} \\"
        yield f"            {_zsh_argument(verb.values)} ;;"
    yield "      esac ;;"
    yield "  esac"
    yield "}"
    yield 'if [[ $funcstack[1] == _spyrec ]]; then _spyrec "$@"; else compdef _spyrec spyrec; fi'


def _zsh_option(option: Word) -> str:
    """Return the specifications of an option, one per name: ``'--cores[Most cores]:value:_files'``."""
    summary = option.summary.translate(str.maketrans({"[": "(", "]": ")", ":": r"\:"}))
    action = "" if not option.takes_value else f":value:{_zsh_values(option.values)}"
    return " ".join(shlex.quote(f"*{name}[{summary}]{action}") for name in option.names)


def _zsh_values(values: Sequence[str]) -> str:
    return f"({' '.join(values)})" if values else "_files"


def _zsh_argument(values: Sequence[str]) -> str:
    return shlex.quote(f"*:argument:{_zsh_values(values)}")


# --- fish ---


def _fish(known: Sequence[Verb]) -> Iterable[str]:
    yield "# completions of spyrec, made by `spyrec completion fish`"
    yield "complete -c spyrec -e"
    for option in _group_options():
        yield f"complete -c spyrec -n __fish_use_subcommand {_fish_option(option)}"
    for verb in known:
        yield f"complete -c spyrec -f -n __fish_use_subcommand -a {verb.name} -d {_fish_quoted(verb.summary)}"
    for verb in known:
        condition = _fish_quoted(f"__fish_seen_subcommand_from {verb.name}")
        if verb.values:
            yield f"complete -c spyrec -f -n {condition} -a {_fish_quoted(' '.join(verb.values))}"
        for option in verb.options:
            yield f"complete -c spyrec -n {condition} {_fish_option(option)}"


def _fish_option(option: Word) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = [] if not option.takes_value else ["-x", "-a", _fish_quoted(" ".join(option.values))]
    if option.takes_value and not option.values:
        value = ["-r"]
    return " ".join([*names, *value, "-d", _fish_quoted(option.summary)])


def _fish_quoted(text: str) -> str:
    """Return a text in quotes; in those of fish a backslash stands before a quote and a backslash."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
