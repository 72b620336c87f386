"""An environment for Harbor without a container engine: a root folder, entered with unshare and chroot."""

import asyncio
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import override

from harbor.environments.base import BaseEnvironment, ExecResult

# Folders of the machine that commands see, read from the machine itself.
MACHINE = ["bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "usr", "opt"]

# The Python that runs Harbor, for agents that need one.
PYTHON = sorted({sys.prefix, sys.base_prefix})


class LocalEnvironment(BaseEnvironment):
    """Stands for a container whose image has a working directory /app and the programs of this machine."""

    @staticmethod
    @override
    def type() -> str:
        return "local"

    @override
    def _validate_definition(self):
        pass

    @property
    def _root(self) -> Path:
        return Path(self.trial_paths.trial_dir) / "root"

    def _inside(self, path) -> Path:
        return self._root / str(path).lstrip("/")

    @override
    async def start(self, force_build: bool) -> None:
        for folder in ["app", "tmp", "root", "installed-agent", "tests", *[f"logs/{n}" for n in ("agent", "verifier", "artifacts")]]:
            self._inside(folder).mkdir(parents=True, exist_ok=True)

    @override
    async def stop(self, delete: bool):
        if delete:
            shutil.rmtree(self._root, ignore_errors=True)

    @override
    async def upload_file(self, source_path, target_path: str):
        target = self._inside(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, target)

    @override
    async def upload_dir(self, source_dir, target_dir: str):
        shutil.copytree(source_dir, self._inside(target_dir), dirs_exist_ok=True)

    @override
    async def download_file(self, source_path: str, target_path):
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._inside(source_path), target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir):
        shutil.copytree(self._inside(source_dir), target_dir, dirs_exist_ok=True)

    @override
    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None) -> ExecResult:
        root = shlex.quote(str(self._root))
        binds = ""
        for name in MACHINE:
            path = Path("/") / name
            if path.is_symlink():
                binds += f"ln -sfn {os.readlink(path)} {root}/{name}; "
            elif path.is_dir():
                binds += f"mkdir -p {root}/{name}; mount --rbind /{name} {root}/{name}; "
        for path in PYTHON:
            if path.split("/")[1] not in MACHINE:
                binds += f"mkdir -p {root}{shlex.quote(path)}; mount --rbind {shlex.quote(path)} {root}{shlex.quote(path)}; "
        inner = f"cd {shlex.quote(cwd or '/app')} && {command}"
        script = f"set -e; {binds} exec chroot {root} /bin/bash -c {shlex.quote(inner)}"
        words = ["unshare", "--mount", "--propagation", "private", "/bin/bash", "-c", script]
        if os.getuid() != 0:
            words[1:1] = ["--user", "--map-root-user"]
        variables = {"PATH": "/installed-agent:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"}
        process = await asyncio.create_subprocess_exec(
            *words,
            env={**variables, **(self._merge_env(env) or {})},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return ExecResult(stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), return_code=process.returncode)
