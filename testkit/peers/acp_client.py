"""Drives `fusee acp` with the ACP project's Python client, which Harbor uses.

Arguments: the directory, then the command of the agent. The model's script writes a.txt, which needs permission,
answers, and answers a second prompt. Prints one JSON object of what the client saw, live and after loading the
session in another process.
"""

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.interfaces import Client
from acp.schema import AllowedOutcome, RequestPermissionResponse


class Recorder(Client):
    def __init__(self):
        self.updates, self.permissions = [], []

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.permissions.append([option.kind for option in options])
        allow = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=allow.option_id))

    def on_connect(self, conn):
        pass

    def text(self, kind):
        of_kind = (update for update in self.updates if update["sessionUpdate"] == kind)
        return "".join(update["content"]["text"] for update in of_kind)

    def kinds(self):
        # Which commands there are is sent after the answer, so it may come too late.
        told = [update for update in self.updates if update["sessionUpdate"] != "available_commands_update"]
        kinds = []
        for update in told:
            if not kinds or kinds[-1] != update["sessionUpdate"]:
                kinds.append(update["sessionUpdate"])
        return kinds


async def main():
    directory, command, *args = sys.argv[1:]
    live, loaded = Recorder(), Recorder()
    async with spawn_agent_process(live, command, *args, env=dict(os.environ), cwd=directory) as (agent, _):
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        session = await agent.new_session(cwd=directory, mcp_servers=[])
        await agent.set_config_option(config_id="flow", session_id=session.session_id, value="flat")
        first = await agent.prompt(session_id=session.session_id, prompt=[text_block("Write it.")])
        second = await agent.prompt(session_id=session.session_id, prompt=[text_block("And now?")])
        listed = await agent.list_sessions(cwd=directory)
    async with spawn_agent_process(loaded, command, *args, env=dict(os.environ), cwd=directory) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        await agent.load_session(cwd=directory, session_id=session.session_id, mcp_servers=[])
    options = {option.id: option for option in session.config_options}
    print(
        json.dumps(
            {
                "agent": hello.agent_info.name,
                "load": hello.agent_capabilities.load_session,
                "options": sorted(options),
                "stops": [first.stop_reason, second.stop_reason],
                "has_usage": first.usage is not None,
                "permissions": live.permissions,
                "said": live.text("agent_message_chunk"),
                "listed": [entry.title for entry in listed.sessions],
                "user": loaded.text("user_message_chunk"),
                "said_when_loaded": loaded.text("agent_message_chunk"),
                "calls": [u["title"] for u in loaded.updates if u["sessionUpdate"] == "tool_call"],
                "kinds_when_loaded": loaded.kinds(),
            }
        )
    )


asyncio.run(main())
