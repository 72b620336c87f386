"""Runs three tasks with the real Harbor package and checks its results: FUSEE_BINARY must name the binary.

Usage: python run_tasks.py FOLDER (an empty folder for tasks and jobs)
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORDS = ["alpha", "beta", "gamma"]


def write(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    folder = Path(sys.argv[1]).resolve()
    for word in WORDS:
        task = folder / "tasks" / word
        write(task / "task.toml", 'schema_version = "1.4"\n[agent]\ntimeout_sec = 120\n[verifier]\ntimeout_sec = 60\n')
        write(task / "instruction.md", f"Write the word {word} to out.txt.\n")
        write(task / "environment/Dockerfile", "FROM debian\nWORKDIR /app\n")
        write(
            task / "tests/test.sh",
            f"grep -q {word} /app/out.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n",
        )
    # Solves two of the three tasks.
    call = lambda text: [{"name": "write_file", "arguments": {"path": "out.txt", "content": text}}]
    lines = [
        {"match": "word alpha", "tool_calls": call("alpha\n"), "usage": {"input_tokens": 100, "output_tokens": 10}},
        {"match": "word beta", "tool_calls": call("wrong\n"), "usage": {"input_tokens": 100, "output_tokens": 10}},
        {"match": "word gamma", "tool_calls": call("gamma\n"), "usage": {"input_tokens": 100, "output_tokens": 10}},
        {"text": "Done.", "usage": {"input_tokens": 120, "output_tokens": 5}},
    ]
    write(folder / "script.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    class_agent = {
        "import_path": "fusee_harbor:FuseeAgent",
        "kwargs": {"script": str(folder / "script.jsonl"), "binary": os.environ["FUSEE_BINARY"]},
    }
    trials = job(folder, "class", class_agent)
    for trial in trials.values():
        assert trial["agent_info"]["name"] == "fusee" and trial["agent_info"]["version"], trial["agent_info"]
        assert trial["agent_result"]["n_output_tokens"] == 15, trial["agent_result"]
    # The entry that is shipped, read by Harbor's own ACP client.
    acp_agent = {
        "import_path": "local_acp:LocalAcpAgent",
        "kwargs": {"registry_entry_path": str(HERE.parent / "fusee.json")},
        "env": {"FUSEE_MODEL": "script:/installed-agent/script.jsonl", "FUSEE_SANDBOX": "off"},
    }
    trials = job(folder, "acp", acp_agent)
    for trial in trials.values():
        assert trial["agent_result"]["n_output_tokens"] == 15, trial["agent_result"]


def job(folder: Path, name: str, agent: dict) -> dict:
    """Runs the three tasks with an agent and returns Harbor's results by task, after the checks that all agents share."""
    config = {
        "job_name": name,
        "jobs_dir": str(folder / "jobs"),
        "n_concurrent_trials": 3,
        "environment": {"import_path": "local_environment:LocalEnvironment"},
        "agents": [agent],
        "tasks": [{"path": str(folder / "tasks" / word)} for word in WORDS],
    }
    write(folder / f"{name}.json", json.dumps(config))
    path = os.pathsep.join([str(HERE), str(HERE.parent)])
    harbor = Path(sys.executable).parent / "harbor"
    settings = {"PYTHONPATH": path, "HARBOR_TELEMETRY": "0", "DO_NOT_TRACK": "1"}
    done = subprocess.run(
        [harbor, "run", "-c", folder / f"{name}.json", "--yes"],
        env={**os.environ, **settings, "FUSEE_SCRIPT": str(folder / "script.jsonl")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        sys.exit(f"harbor run exited with {done.returncode}\n{done.stdout}\n{done.stderr}")
    from harbor.models.trajectories import Trajectory

    trials, rewards = {}, {}
    for result in (folder / "jobs" / name).glob("*/result.json"):
        trial = json.loads(result.read_text())
        if trial.get("exception_info"):
            sys.exit(f"{result}: {json.dumps(trial['exception_info'], indent=1)}")
        task = trial["task_name"].split("/")[-1]
        trials[task] = trial
        rewards[task] = trial["verifier_result"]["rewards"]["reward"]
        trajectory = Trajectory.model_validate_json((result.parent / "agent/trajectory.json").read_text())
        assert trajectory.agent.name == "fusee", trajectory.agent
        assert any(step.tool_calls for step in trajectory.steps), trajectory.steps
    assert rewards == {"alpha": 1.0, "beta": 0.0, "gamma": 1.0}, rewards
    print(f"{name}: three tasks, rewards", rewards)
    return trials


if __name__ == "__main__":
    main()
