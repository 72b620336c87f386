"""Harbor's own ACP agent, without the package managers and downloads that it uses in a container."""

import os
import sys
from typing import override

from harbor.agents.installed.acp import AcpAgent
from harbor.environments.base import BaseEnvironment


class LocalAcpAgent(AcpAgent):
    """Takes the runner's Python, with agent-client-protocol, from this process, and fusee from FUSEE_BINARY."""

    _RUNNER_VENV_PATH = sys.prefix

    @override
    def _build_dependencies_command(self, kind) -> str:
        return "true"

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        await environment.upload_file(os.environ["FUSEE_BINARY"], "/installed-agent/fusee")
        await environment.upload_file(os.environ["FUSEE_SCRIPT"], "/installed-agent/script.jsonl")
        await super().install(environment)
