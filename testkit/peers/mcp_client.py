"""Drives Fusee with the MCP project's own Python client, in both eras of the protocol.

Arguments: the mode of the client (`auto` or `legacy`), then the command of the server, or its URL and token. The model's
script writes a.txt, which needs approval, and then answers. Prints one JSON object of what the client saw.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

asked = []


async def elicit(context, params):
    asked.append(params.message)
    return ElicitResult(action="accept", content={"decision": "once"})


async def main():
    mode, command, *args = sys.argv[1:]
    if command.startswith("http://"):
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer " + args[0]}, timeout=60)
        server = streamable_http_client(command, http_client=http)
    else:
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    progress = []

    async def note(count, total, message):
        progress.append(message)

    async with Client(server, mode=mode, elicitation_callback=elicit) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        request = {"request": "Write it.", "flow": "flat"}
        result = await client.call_tool("fusee_run", request, progress_callback=note)
        run = result.structured_content["run"]
        diff = await client.read_resource(f"fusee://runs/{run}/diff")
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        print(
            json.dumps(
                {
                    "protocol": client.protocol_version,
                    "tools": tools,
                    "asked": len(asked),
                    "answer": result.structured_content.get("answer"),
                    "status": result.structured_content["status"],
                    "diff": diff.contents[0].text,
                    "has_prompts": bool(prompts),
                    "has_progress": bool(progress),
                }
            )
        )


asyncio.run(main())
