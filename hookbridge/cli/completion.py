"""`hookbridge completion` prints what a shell needs to complete commands and flags."""

from __future__ import annotations

from collections.abc import Iterator

from hookbridge.cli.parser import Parser, Values

SUMMARY = "Print a script that completes commands and flags in bash or zsh."
USAGE = "bash|zsh"
EXAMPLE = "hookbridge completion bash > ~/.hookbridge_completion"
NOTE = (
    "bash: add `source ~/.hookbridge_completion` to ~/.bashrc.\n"
    "zsh: add `source <(hookbridge completion zsh)` to ~/.zshrc."
)
# What each shell needs before the script, which is written for bash; zsh runs it in
# its emulation of sh.
SHELLS = {
    "bash": "",
    "zsh": "autoload -U +X compinit bashcompinit\ncompinit\nbashcompinit\n",
}
_SCRIPT = """\
_hookbridge() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local prefix= words=
  # bash makes three words of `--flag=value`, zsh one.
  case "$word" in
    =) word= ;;
    --*=*) before="${{word%%=*}}" prefix="${{word%%=*}}=" word="${{word#*=}}" ;;
    *) [ "$before" = "=" ] && before="${{COMP_WORDS[COMP_CWORD-2]}}" ;;
  esac
  case " ${{COMP_WORDS[*]:1:$((COMP_CWORD-1))}} |$before" in
{cases}
  esac
  COMPREPLY=($(compgen -P "$prefix" -W "$words" -- "$word"))
}}
complete -o default -F _hookbridge hookbridge
"""


def define_flags(parser: Parser) -> None:
    """Defines the command's argument: the shell."""
    parser.argument("shell", choices=SHELLS)


def run(values: Values) -> int:
    """Prints the script."""
    cases = "\n".join(
        f'    {pattern}) words="{" ".join(words)}" ;;' for pattern, words in _cases()
    )
    print(SHELLS[values.shell] + _SCRIPT.format(cases=cases), end="")
    return 0


def _cases() -> Iterator[tuple[str, list[str]]]:
    """Patterns of what stands before the cursor, and the words that may follow.

    The first pattern that fits is taken: the values of a flag come before the flags.
    """
    from hookbridge.cli.command import COMMANDS, parser_of

    yield '"  |"*', [*dict.fromkeys(n.split()[0] for n in COMMANDS), "--help"]
    groups = dict.fromkeys(n.split()[0] for n in COMMANDS if " " in n)
    for group in groups:
        yield f'" {group} |"*', [n.split()[1] for n in COMMANDS if n.startswith(group)]
    for name in COMMANDS:
        _, parser = parser_of(name)
        for flag, action in parser.flags.items():
            if action.choices:
                yield f'" {name} "*"|--{flag}"', action.choices
        yield f'" {name} "*', [f"--{flag}" for flag in parser.flags]
