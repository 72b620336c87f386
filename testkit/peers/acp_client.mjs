// Drives `fusee acp` with the ACP project's npm client, which validates every message against the schema.
//
// Arguments: the file of the package, the directory, then the command of the agent. The model's script writes a.txt,
// which is refused, answers, sleeps until it is cancelled, and answers once more. Prints one JSON object of what the
// client saw.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [file, directory, command, ...args] = process.argv.slice(2);
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(file).href);

async function connected(work) {
  const agent = spawn(command, args, { cwd: directory, stdio: ["pipe", "pipe", "inherit"] });
  const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  const seen = { updates: [], permissions: [], running: null };
  const app = client({ name: "test" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.permissions.push(params.toolCall.title);
      const reject = params.options.find((option) => option.kind === "reject_once");
      return { outcome: { outcome: "selected", optionId: reject.optionId } };
    })
    .onNotification(methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
      if (params.update.kind === "execute") seen.running?.();
    });
  const result = await app.connectWith(stream, (context) => work(context, seen));
  agent.stdin.end();
  return result;
}

const text = (seen) =>
  seen.updates
    .filter((update) => update.sessionUpdate === "agent_message_chunk")
    .map((update) => update.content.text)
    .join("");

const first = await connected(async (agent, seen) => {
  const hello = await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId, modes } = await agent.request(methods.agent.session.new, { cwd: directory, mcpServers: [] });
  await agent.request(methods.agent.session.setConfigOption, { sessionId, configId: "flow", value: "flat" });
  await agent.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
  const prompt = (words) => agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
  const refused = await prompt("Write it.");
  await agent.request(methods.agent.session.setMode, { sessionId, modeId: "auto" });
  const began = new Promise((resolve) => (seen.running = resolve));
  const pending = prompt("Sleep.");
  await began;
  await agent.notify(methods.agent.session.cancel, { sessionId });
  const cancelled = await pending;
  const failed = seen.updates.filter((update) => update.status === "failed").length;
  const stops = [refused.stopReason, cancelled.stopReason];
  return { sessionId, image: hello.agentCapabilities.promptCapabilities.image, mode: modes.currentModeId, stops, failed,
    permissions: seen.permissions, said: text(seen) };
});

const second = await connected(async (agent, seen) => {
  await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = first;
  await agent.request(methods.agent.session.resume, { sessionId, cwd: directory, mcpServers: [] });
  const replayed = seen.updates.filter((update) => update.sessionUpdate.endsWith("_chunk")).length;
  const answer = await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "And now?" }] });
  await agent.request(methods.agent.session.close, { sessionId });
  return { replayed, stop: answer.stopReason, said: text(seen) };
});

delete first.sessionId;
console.log(JSON.stringify({ first, second }));
