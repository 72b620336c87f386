#!/usr/bin/env python3
"""Draws docs/demo.svg: runs a command in a terminal of its own and draws what stands there in the end.

    docs/picture.py target/release/fusee demo --fast > docs/demo.svg

Only the control sequences that fusee writes are understood; any other stops the drawing with its name.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from html import escape

COLUMNS, ROWS = 100, 400
CELL, LINE, MARGIN, BAR = 8.43, 19, 16, 30
INK = {"": "#d7dae0", "1": "#ffffff", "2": "#7f8794", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341",
       "34": "#79c0ff", "35": "#d2a8ff", "36": "#76d9e6", "90": "#7f8794"}


def output_of(command):
    """Everything the command writes to its terminal."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS))
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return b"".join(parts).decode()


class Screen:
    """A terminal as far as we need one: cells with a style, a cursor."""

    def __init__(self):
        self.rows, self.row, self.column, self.style = [[]], 0, 0, frozenset()

    def feed(self, text):
        for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[\s\S]", text):
            if token.startswith("\x1b["):
                self.control(token[2:-1], token[-1])
            elif token == "\r":
                self.column = 0
            elif token == "\n":
                self.down(1)
            elif token.startswith("\x1b") or ord(token) < 32:
                sys.exit(f"unknown control sequence {token!r}")
            else:
                self.put(token)

    def down(self, count):
        self.row += count
        while len(self.rows) <= self.row:
            self.rows.append([])

    def put(self, character):
        if self.column == COLUMNS:
            self.down(1)
            self.column = 0
        row = self.rows[self.row]
        row.extend([(" ", frozenset())] * (self.column + 1 - len(row)))
        row[self.column] = (character, self.style)
        self.column += 1

    def control(self, arguments, name):
        count = int(arguments) if arguments.isdigit() else 1
        if name == "m":
            for code in arguments.split(";"):
                self.style = frozenset() if code in ("", "0") else self.style | {code}
        elif name == "A":
            self.row = max(0, self.row - count)
        elif name == "B":
            self.down(count)
        elif name == "C":
            self.column += count
        elif name == "G":
            self.column = count - 1
        elif name == "K":
            del self.rows[self.row][0 if arguments == "2" else self.column:]
        elif name == "J":
            del self.rows[self.row][self.column:], self.rows[self.row + 1:]
        elif (name, arguments) not in {("h", "?25"), ("l", "?25"), ("h", "?2026"), ("l", "?2026")}:
            sys.exit(f"unknown control sequence {arguments}{name}")


def runs(row):
    """The row in stretches of one style."""
    stretches = []
    for column, (character, style) in enumerate(row):
        if stretches and stretches[-1][2] == style:
            stretches[-1][1] += character
        else:
            stretches.append([column, character, style])
    return [stretch for stretch in stretches if stretch[1].strip()]


def draw(rows, title):
    while rows and not any(character.strip() for character, _ in rows[-1]):
        rows.pop()
    width = round(2 * MARGIN + CELL * min(COLUMNS, max(len(row) for row in rows)))
    height = BAR + MARGIN + LINE * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title>",
        "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "white-space:pre}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#16191f"/>',
        f'<text x="{MARGIN}" y="21" fill="#7f8794">{escape(title)}</text>',
    ]
    for number, row in enumerate(rows):
        for column, text, style in runs(row):
            colour = next((INK[code] for code in sorted(style, reverse=True) if code in INK), INK[""])
            bold = ' font-weight="600"' if "1" in style else ""
            start = len(text) - len(text.lstrip())
            text = text.strip()
            x, y = MARGIN + CELL * (column + start), BAR + LINE * (number + 1) - 5
            out.append(f'<text x="{x:.1f}" y="{y}" textLength="{CELL * len(text):.1f}" fill="{colour}"{bold}>'
                       f"{escape(text)}</text>")
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    screen = Screen()
    screen.feed(output_of(sys.argv[1:]))
    print(draw(screen.rows, "$ " + " ".join(["fusee", *(word for word in sys.argv[2:] if word != "--fast")])), end="")
