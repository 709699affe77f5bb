#!/usr/bin/env python3
"""Man pages and shell completions, made of what the program itself says for --help.

    describe_cli.py PROGRAM OUT

OUT/man: tensormill.1 and tensormill-COMMAND.1. OUT/bash/tensormill, OUT/zsh/_tensormill, OUT/fish/tensormill.fish.
"""

import re
import subprocess
import sys
from pathlib import Path

HEADING = re.compile(r"^(\w[\w ]*):$")
# An option or a name at the margin of its list, and what is said of it on this line.
ROW = re.compile(r"^  (\S.*?)(?:\s{2,}(\S.*))?$")


class Option:
    """One row: the names that it has, what it takes, what it does."""

    def __init__(self, head, says):
        words = head.split()
        self.names = [word for word in words[0].split(",") if word]
        takes = " ".join(words[1:]).replace(" ...", "")
        self.takes = takes.split(":")[0] if takes else ""
        found = re.search(r":\{([^}]*)\}", takes)
        self.choices = found.group(1).split(",") if found else []
        self.says = says


class Command:
    """What `PROGRAM NAME --help` says."""

    def __init__(self, name, text):
        self.name, self.says = name, text.split("\n", 1)[0].strip()
        self.usage = next(line[len("Usage: "):] for line in text.splitlines() if line.startswith("Usage: "))
        self.rows = {"Options": [], "Positionals": []}
        self.groups, self.examples, heading = [], [], None
        for line in text.splitlines():
            found, row = HEADING.match(line), ROW.match(line)
            if found and found.group(1) == "Examples":
                heading = None
            elif found:
                if found.group(1) not in ("Options", "Positionals"):
                    self.groups.append(found.group(1))
                heading = self.rows.setdefault(found.group(1), [])
            elif line.startswith("  tensormill ") and heading is None:
                self.examples.append(line.strip())
            elif not line:
                continue
            elif row and heading is not None and not line.startswith("   "):
                heading.append([row.group(1), row.group(2) or ""])
            elif line.startswith("   ") and heading:
                heading[-1][1] = (heading[-1][1] + " " + line.strip()).strip()
        self.options = [Option(head, says) for head, says in self.rows["Options"]]
        self.positionals = self.rows["Positionals"]
        # Commands stand under headings of their own.
        self.commands = [(head, says) for group in self.groups for head, says in self.rows[group]]


def ask(program, *names):
    done = subprocess.run([program, *names, "--help"], stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return Command(" ".join(names), done.stdout)


def roff(text):
    """Text as a man page takes it: no letter of it is an instruction."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith(".") else text


def man_page(command, version):
    title = " ".join(["tensormill", command.name]).strip()
    lines = [f'.TH {title.replace(" ", "-").upper()} 1 "" "tensormill {version}"', ".SH NAME",
             f"{roff(title.replace(' ', '-'))} \\- {roff(command.says)}", ".SH SYNOPSIS", f".B {roff(command.usage)}"]
    for heading, rows in (("ARGUMENTS", command.positionals), ("OPTIONS", command.rows["Options"]),
                          ("COMMANDS", command.commands)):
        if rows:
            lines.append(f".SH {heading}")
        for head, says in rows:
            lines += [".TP", f".B {roff(head)}", roff(says)]
    if command.examples:
        lines += [".SH EXAMPLES", ".nf", *map(roff, command.examples), ".fi"]
    lines += [".SH EXIT STATUS", "0 done; 2 the command line is wrong; 3 the input is wrong; 4 not supported; 5 internal error."]
    if command.name:
        lines += [".SH SEE ALSO", ".BR tensormill (1)"]
    return "\n".join(lines) + "\n"


def bash_completion(top, commands):
    """Completes commands, options, choices and files."""
    lines = ["# Made of the program's own help. shellcheck shell=bash", "_tensormill() {",
             '  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= at options',
             "  for ((at = 1; at < COMP_CWORD; at++)); do",
             '    [[ ${COMP_WORDS[at]} == -* ]] || { command=${COMP_WORDS[at]}; break; }', "  done",
             "  COMPREPLY=()", '  case "$command $before" in']
    for command in commands:
        for option in command.options:
            if option.choices:
                patterns = "|".join(f'"{command.name} {name}"' for name in option.names)
                lines += [f"    {patterns}) mapfile -t COMPREPLY < <(compgen -W '{' '.join(option.choices)}' -- \"$word\"); return ;;"]
    lines += ["  esac", '  case "$command" in']
    for command in commands:
        names = " ".join([name for option in command.options for name in option.names] + [name for name, _ in command.commands])
        lines.append(f"    {command.name}) options='{names}' ;;")
    names = " ".join([name for option in top.options for name in option.names] + [name for name, _ in top.commands])
    lines += [f"    '') options='{names}' ;;", "    *) return ;;", "  esac",
              '  if [[ $word == -* || -z $command ]]; then',
              '    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")', "  else",
              '    mapfile -t COMPREPLY < <(compgen -f -- "$word")', "  fi", "}", "complete -o filenames -F _tensormill tensormill"]
    return "\n".join(lines) + "\n"


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_text(text):
    return text.replace("[", "(").replace("]", ")").replace(":", " ").replace("'", "")


def zsh_completion(top, commands):
    lines = ["#compdef tensormill", "# Made of the program's own help.", "_tensormill() {", "  local -a commands", "  commands=("]
    lines += [f"    {quoted(name + ':' + zsh_text(says))}" for name, says in top.commands]
    lines += ["  )", "  if (( CURRENT == 2 )); then", "    _describe command commands", "    return", "  fi",
              '  case "$words[2]" in']
    for command in commands:
        lines.append(f"    {command.name})")
        lines.append("      _arguments \\")
        for option in command.options:
            values = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files" if option.takes else ""
            for name in option.names:
                lines.append(f"        {quoted(f'{name}[{zsh_text(option.says)}]{values}')} \\")
        lines += ["        '*:file:_files'", "      ;;"]
    return "\n".join([*lines, "  esac", "}", '_tensormill "$@"']) + "\n"


def fish_completion(top, commands):
    lines = ["# Made of the program's own help.", "complete -c tensormill -f"]
    for name, says in top.commands:
        lines.append(f"complete -c tensormill -n __fish_use_subcommand -a {name} -d {quoted(says)}")
    for command in commands:
        when = f"-n '__fish_seen_subcommand_from {command.name}'"
        lines.append(f"complete -c tensormill {when} -F")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            takes = f" -x -a {quoted(' '.join(option.choices))}" if option.choices else " -r" if option.takes else ""
            lines.append(f"complete -c tensormill {when} {names}{takes} -d {quoted(option.says)}")
    return "\n".join(lines) + "\n"


def main(program, out):
    # "tensormill 0.1.0 (36c4...), llvm 19.1.7"
    version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.split()[1]
    top = ask(program)
    commands = [ask(program, name) for name, _ in top.commands]
    below = [ask(program, command.name, name) for command in commands for name, _ in command.commands]
    for command in [top, *commands, *below]:
        name = "-".join(["tensormill", *command.name.split()])
        write(out / "man" / f"{name}.1", man_page(command, version))
    write(out / "bash" / "tensormill", bash_completion(top, commands))
    write(out / "zsh" / "_tensormill", zsh_completion(top, commands))
    write(out / "fish" / "tensormill.fish", fish_completion(top, commands))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
