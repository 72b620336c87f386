"""Prints the names of attributes and metrics that OpenTelemetry's own packages define, as one JSON array."""

import json
import pathlib
import re

import opentelemetry.semconv
import opentelemetry.util.genai

NAME = re.compile(r'"([a-z_]+(?:\.[a-z_]+)+)"')

names = set()
for package in [opentelemetry.semconv, opentelemetry.util.genai]:
    for folder in package.__path__:
        for file in pathlib.Path(folder).rglob("*.py"):
            names.update(NAME.findall(file.read_text()))
print(json.dumps(sorted(names)))
