"""``spyrec completion``: what a shell needs to complete command lines."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(*, shell: str) -> int:
    """Print the completions of SHELL: verbs, options, choices, names; files where a path is due.

    bash: put them into ~/.bashrc.  zsh: into a file _spyrec of a directory of $fpath.  fish: into
    ~/.config/fish/completions/spyrec.fish.  Print them again with a new version of spyrec.
    """
    from spyrec.cli._completions import declared_verbs, script

    click.echo(script(shell, declared_verbs()), nl=False)
    return 0
