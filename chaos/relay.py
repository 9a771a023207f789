"""Nodes: processes of the program under test."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from chaos.processes import ChaosError, Process, free_port, wait_until

ROOT = Path(__file__).resolve().parent.parent


def program(variable="PILLARBOX", default=ROOT / "target" / "release" / "pillarbox"):
    path = Path(os.environ.get(variable) or default).resolve()
    if not os.access(path, os.X_OK):
        raise ChaosError(f"there is no program {path}; build it: cargo build --release -p pillarbox-cli")
    return str(path)


def build():
    """The commit of the program under test: what CHAOS_BUILD says, or that of this tree."""
    told = os.environ.get("CHAOS_BUILD")
    return told or subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                                  check=True).stdout.strip()


def migrate(binary, url):
    done = subprocess.run([binary, "migrate", "--store", url], capture_output=True, text=True, timeout=180,
                          stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ChaosError(f"migrate failed: {done.stderr.strip()}")


class Node(Process):
    """A relay. What it is asked for, `--to file:…` or `--config …`, is the caller's choice."""

    def __init__(self, name, arguments, log, *, binary=None, port=None):
        self.name, self.port = name, port
        super().__init__([binary or program(), "relay", *arguments], log,
                         env={"RUST_BACKTRACE": "1", "RUST_LOG": os.environ.get("CHAOS_LOG", "info")})

    def stop(self):
        """A stop in order; any other exit code than 0 is an error of the relay."""
        code = self.end(signal.SIGTERM, 45)
        if code != 0:
            raise ChaosError(f"{self.name} ended with {code}: {self.said(5)}")

    def page(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def status(self):
        code, body = self.page("/status")
        return json.loads(body) if code == 200 else {"sources": []}

    def wait_until_ready(self, seconds=60):
        wait_until(f"{self.name} is ready", lambda: self.page("/health/ready")[0] == 200, seconds)


def lines_node(world, name, *, url=None, binary=None, environment=None):
    """A relay that appends lines of JSON to the record of the run."""
    arguments = ["--store", url or world.url(), "--mode", world.cell.mode, "--to", f"file:{world.record_path}",
                 "--lease", f"{world.fault.lease}s", "--node-name", name, "--poll-interval", "200ms"]
    node = Node(name, arguments, world.path(f"{name}.log"), binary=binary)
    node.env.update(environment or {})
    return node


def configured_node(world, name, sections, source=""):
    """A relay that passes events on to brokers, by a file of sections."""
    port = free_port()
    file = world.path(f"{name}.toml")
    with open(file, "w") as out:
        out.write(f'[relay]\nlisten = "127.0.0.1:{port}"\n\n[[source]]\nname = "shop"\nmode = "{world.cell.mode}"\n'
                  f'store.url = "{world.url()}"\n{source}\n{sections}\n')
    return Node(name, ["--config", file], world.path(f"{name}.log"), port=port)
