"""A client of `fusee acp` with the ACP project's Python package whose editor has unsaved text in every file.

Arguments: the directory, then the command of the agent. The model's script reads a.txt and tries to change it. Prints one
JSON object: the files that were asked for, and what the agent said about its calls.
"""

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.interfaces import Client
from acp.schema import ClientCapabilities, FileSystemCapabilities, ReadTextFileResponse


class Editor(Client):
    def __init__(self):
        self.asked, self.results = [], []

    async def session_update(self, session_id, update, **kwargs):
        update = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        if update["sessionUpdate"] == "tool_call_update" and "status" in update:
            self.results.append([update["status"], update["content"][0]["content"]["text"]])

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        self.asked.append(os.path.basename(path))
        return ReadTextFileResponse(content="unsaved\n")

    def on_connect(self, conn):
        pass


async def main():
    directory, command, *args = sys.argv[1:]
    editor = Editor()
    async with spawn_agent_process(editor, command, *args, env=dict(os.environ), cwd=directory) as (agent, _):
        files = FileSystemCapabilities(read_text_file=True)
        capabilities = ClientCapabilities(fs=files)
        await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=capabilities)
        session = await agent.new_session(cwd=directory, mcp_servers=[])
        await agent.set_config_option(config_id="flow", session_id=session.session_id, value="flat")
        answer = await agent.prompt(session_id=session.session_id, prompt=[text_block("Change it.")])
    print(json.dumps({"asked": editor.asked, "results": editor.results, "stop": answer.stop_reason}))


asyncio.run(main())
