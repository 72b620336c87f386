#!/usr/bin/env python3
"""Draws docs/demo.svg: runs a command in a terminal of its own and draws what appeared there, and when.

    docs/picture.py target/release/fusee demo > docs/demo.svg

The picture moves as the run did, then rests and begins again; where pictures do not move it shows the end. Only
the control sequences that fusee writes are understood; any other stops the drawing with its name.
"""

import codecs
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import time
from html import escape

COLUMNS, ROWS = 100, 400
WINDOW, REST_S = 37, 15
CELL, LINE, MARGIN, BAR = 8.43, 19, 16, 30
PAPER = "#16191f"
INK = {"": "#d7dae0", "1": "#ffffff", "2": "#7f8794", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341",
       "34": "#79c0ff", "35": "#d2a8ff", "36": "#76d9e6", "90": "#7f8794"}


def outputs_of(command):
    """Everything the command writes to its terminal, each part with the second it came at."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    begun, decoder = time.monotonic(), codecs.getincrementaldecoder("utf-8")()
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        yield time.monotonic() - begun, decoder.decode(part)
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(f"{command} ended with {os.waitstatus_to_exitcode(status)}")


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
    """The row in stretches of one style, without the white space between and around them."""
    stretches = []
    for column, (character, style) in enumerate(row):
        if stretches and stretches[-1][2] == style:
            stretches[-1][1] += character
        else:
            stretches.append([column, character, style])
    # Not every reader of SVG keeps two spaces in a row.
    return [(column + found.start(), found.group(), style)
            for column, text, style in stretches for found in re.finditer(r"\S+( \S+)*", text)]


def watch(command):
    """The rows that stand there in the end, and the second since which each has been as it is."""
    screen, since, seen = Screen(), [], []
    for second, part in outputs_of(command):
        screen.feed(part)
        for number, row in enumerate(screen.rows):
            if number == len(seen):
                seen.append(None)
                since.append(second)
            if seen[number] != row:
                seen[number] = list(row)
                since[number] = second
    rows = screen.rows
    while rows and not any(character.strip() for character, _ in rows[-1]):
        rows.pop()
    latest = 0
    for number in range(len(rows)):
        since[number] = latest = max(latest, since[number])
    return rows, since[:len(rows)]


def steps(name, since, position):
    """A CSS animation that jumps to the position of each row when it appears, and the last position."""
    whole = since[-1] + REST_S
    frames, last = [], None
    for number, second in enumerate(since):
        if number + 1 < len(since) and since[number + 1] == second:
            continue
        at = position(number + 1)
        if at != last:
            frames.append(f"{100 * second / whole:.2f}%{{transform:translateY({at}px)}}")
            last = at
    start = position(0)
    return (f"@keyframes {name}{{0%{{transform:translateY({start}px)}}{''.join(frames)}"
            f"100%{{transform:translateY({last}px)}}}}.{name}{{animation:{name} {whole:.1f}s step-end infinite}}", last)


def draw(rows, since, title):
    width = round(2 * MARGIN + CELL * COLUMNS)
    window = min(WINDOW, len(rows))
    height = BAR + MARGIN + LINE * window
    scroll, scrolled = steps("scroll", since, lambda count: -LINE * max(0, count - window))
    cover, covered = steps("cover", since, lambda count: LINE * count)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        "font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\">",
        f"<title>{escape(title)}</title>",
        f"<style>{scroll}{cover}@media(prefers-reduced-motion){{.scroll,.cover{{animation:none}}}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
        f'<text x="{MARGIN}" y="21" fill="{INK["2"]}">{escape(title)}</text>',
        f'<svg y="{BAR}" width="{width}" height="{LINE * window}"><g class="scroll" transform="translate(0 {scrolled})">',
    ]
    for number, row in enumerate(rows):
        for column, text, style in runs(row):
            colour = next((INK[code] for code in sorted(style, reverse=True) if code in INK), INK[""])
            bold = ' font-weight="600"' if "1" in style else ""
            x, y = MARGIN + CELL * column, LINE * (number + 1) - 5
            out.append(f'<text x="{x:.1f}" y="{y}" textLength="{CELL * len(text):.1f}" fill="{colour}"{bold}>'
                       f"{escape(text)}</text>")
    out.append(f'<rect class="cover" transform="translate(0 {covered})" width="{width}" height="{LINE * len(rows)}" '
               f'fill="{PAPER}"/></g></svg></svg>')
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    print(draw(*watch(sys.argv[1:]), "$ " + " ".join(["fusee", *sys.argv[2:]])), end="")
