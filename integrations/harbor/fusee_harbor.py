"""Runs Fusee as an agent of Harbor: `harbor run -a fusee_harbor:FuseeAgent -m provider/model -p TASK`.

Options (`--ak NAME=VALUE`):
  binary  path of a `fusee` binary on this machine that is uploaded [default: the one on PATH, or FUSEE_BINARY]
  url     address of a release archive (.tar.gz with `fusee` in it) that the container downloads instead
  flow    flow, as for `fusee run --flow`
  script  model script on this machine, as for `-m script:FILE`; for tests without a model
"""

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import override

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import (
    AgentSafetyRefusalError,
    ApiInternalServerError,
    BaseInstalledAgent,
    ContextWindowExceededError,
    ErrorPattern,
    with_prompt_template,
)
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

BINARY = "/installed-agent/fusee"
TRAJECTORY = "/logs/agent/trajectory.json"


class FuseeAgent(BaseInstalledAgent):
    """Installs the binary, runs one task in the container's working directory, and exports the trajectory."""

    # The last line of a failed run; Harbor takes the last pattern that matches.
    ERROR_PATTERNS = [
        *BaseInstalledAgent.ERROR_PATTERNS,
        ErrorPattern(r"failure class: provider", ApiInternalServerError),
        ErrorPattern(r"failure class: overflow", ContextWindowExceededError),
        ErrorPattern(r"failure class: refusal", AgentSafetyRefusalError),
    ]
    capabilities = AgentCapabilities(atif=True, base_url=True, resume=True)

    def __init__(self, *args, binary=None, url=None, flow=None, script=None, **kwargs):
        super().__init__(*args, **kwargs)
        self._binary = binary or os.environ.get("FUSEE_BINARY") or shutil.which("fusee")
        self._url, self._flow, self._script = url, flow, script

    @staticmethod
    @override
    def name() -> str:
        return "fusee"

    @override
    def get_version_command(self) -> str | None:
        return f"{BINARY} --version"

    @override
    def parse_version(self, stdout: str) -> str:
        return stdout.strip().removeprefix("fusee ")

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        if self._url:
            fetch = f"curl -fsSL {shlex.quote(self._url)} | tar -xz -C /installed-agent --wildcards '*fusee'"
            find = f"find /installed-agent -type f -name fusee -exec mv {{}} {BINARY} \\;"
            await self.exec_as_root(environment, f"{fetch} && ({find} || true)")
        elif self._binary:
            await environment.upload_file(self._binary, BINARY)
        else:
            raise RuntimeError("no fusee binary: pass --ak binary=PATH or --ak url=ARCHIVE")
        if self._script:
            await environment.upload_file(self._script, "/installed-agent/script.jsonl")
        await self.exec_as_root(environment, f"chmod 755 {BINARY}")

    def _model(self) -> str | None:
        if self._script:
            return "script:/installed-agent/script.jsonl"
        # Harbor writes provider/model, Fusee provider:model.
        return self.model_name.replace("/", ":", 1) if self.model_name else None

    @override
    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        # The container is the sandbox, so commands run in it as they are.
        words = [BINARY, "run", instruction, "--sandbox", "off", "--json"]
        if model := self._model():
            words += ["--model", model]
        if self._base_url:
            words += ["--base-url", self._base_url]
        if self._flow:
            words += ["--flow", self._flow]
        if self._resume:
            words += ["--continue"]
        export = f"{BINARY} bench export last --format atif -o {TRAJECTORY}"
        command = (
            f"{shlex.join(words)} > /logs/agent/events.jsonl 2> >(tee /logs/agent/fusee.log >&2) < /dev/null; "
            f"code=$?; {export}; exit $code"
        )
        await self.exec_as_agent(environment, command=command)

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        trajectory = Path(self.logs_dir) / "trajectory.json"
        if not trajectory.is_file():
            return
        metrics = json.loads(trajectory.read_text()).get("final_metrics") or {}
        context.n_input_tokens = metrics.get("total_prompt_tokens")
        context.n_output_tokens = metrics.get("total_completion_tokens")
        context.n_cache_tokens = metrics.get("total_cached_tokens")
        context.cost_usd = metrics.get("total_cost_usd")
