"""Child processes, ports and bounded waits."""

import os
import random
import signal
import socket
import subprocess
import time

OWNER = "postgres"


class ChaosError(Exception):
    """A run that cannot give a verdict, such as a server that does not start."""


def is_root():
    return os.geteuid() == 0


#: Names of ports, which other runs see taken until this process ends, also while a server is down.
_reserved = []


def free_port():
    """A port that nobody has, below the range that the kernel hands out by itself."""
    while True:
        port = random.randrange(20000, 32000)
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                name.bind(f"\0pillarbox-chaos-{port}")
                probe.bind(("127.0.0.1", port))
            except OSError:
                name.close()
                continue
        _reserved.append(name)
        return port


def wait_until(what, check, seconds=30.0, pause=0.05):
    """Waits for a true answer, and returns it; an answer that never comes is an error."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise ChaosError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)


def give_to_owner(path):
    """Hands a folder to the user that servers run as: PostgreSQL refuses to run as root."""
    if is_root():
        subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", str(path)], check=True)


def as_owner(command):
    """The command under the servers' user, if this process is root."""
    if not is_root():
        return list(command)
    return ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--init-groups", "--", *command]


def run_as_owner(command, **options):
    """Runs a server's tool to its end; a failure shows what it said."""
    done = subprocess.run(as_owner(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/",
                          timeout=120, **options)
    if done.returncode:
        raise ChaosError(f"{command[0]} failed: {done.stderr.strip()[-500:] or done.stdout.strip()[-500:]}")
    return done.stdout


class Process:
    """A long-running child process with a log file. It dies with this process, however that ends.

    The kernel ties this to the thread that started it, so processes are started by the main thread alone.
    """

    def __init__(self, command, log, *, owned=False, env=None, preload=None):
        # A library is loaded into the program alone, not into what changes the user before.
        preloaded = ["env", f"LD_PRELOAD={preload}"] if preload else []
        self.command, self.log, self.owned = [*preloaded, *map(str, command)], log, owned
        self.env = {**os.environ, **(env or {})}
        self.child = None

    def start(self):
        identity = as_owner([])[:-1] if self.owned and is_root() else ["setpriv"]
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                [*identity, "--pdeathsig", "KILL", "--", *self.command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd="/", env=self.env, start_new_session=True)
        return self

    @property
    def pid(self):
        return self.child.pid

    def is_alive(self):
        return self.child is not None and self.child.poll() is None

    def tell(self, number):
        if self.is_alive():
            self.child.send_signal(number)

    def family(self):
        """The process and all its descendants."""
        found, left = [], [self.pid]
        while left:
            pid = left.pop()
            found.append(pid)
            left += children_of(pid)
        return found

    def kill(self):
        """Ends the process and its descendants by SIGKILL, all at once."""
        if self.child is None:
            return
        for pid in self.family() if self.is_alive() else []:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.child.wait(20)

    def pause(self):
        for pid in self.family():
            os.kill(pid, signal.SIGSTOP)

    def resume(self):
        for pid in self.family():
            os.kill(pid, signal.SIGCONT)

    def end(self, number=signal.SIGTERM, seconds=30):
        """Ends the process in order, and returns its exit code; None if it had to be killed."""
        if self.child is None:
            return 0
        self.tell(number)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def said(self, lines=20):
        """The end of the log."""
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-lines:])


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def peak_memory(pid):
    """The largest resident set of a process so far, in MiB."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    raise ChaosError(f"process {pid} tells no VmHWM")

