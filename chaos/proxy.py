"""A TCP proxy whose traffic can be cut, stalled, delayed and slowed down. It runs as a process of its own.

Commands come as lines on standard input. Each is answered by `ok` and what was counted before it: connections that are open, chunks
of bytes that had to wait since the start, and connections that were refused since the start.

    pass                traffic flows
    cut                 open connections are reset, new ones are refused
    stall               nothing flows in either direction, new connections are accepted
    one-way             nothing flows from the server to the client
    delay SECONDS       every chunk of bytes arrives so much later, in both directions
    rate BYTES          so many bytes a second from the server to the client, over all connections
    target HOST PORT    new connections lead there; open ones are reset
"""

import asyncio
import subprocess
import sys
import time
from collections import namedtuple

from chaos.processes import ChaosError

CHUNK = 65536
PAST = 256
Counts = namedtuple("Counts", "open held refused")


class Traffic:
    """The rules that all connections obey."""

    #: Seconds on a slow link from which on a chunk counts as one that had to wait.
    NOTICEABLE = 0.001

    def __init__(self, host, port):
        self.target = (host, port)
        self.open = asyncio.Event()
        self.open.set()
        self.back_open = asyncio.Event()
        self.back_open.set()
        self.refusing = False
        self.delay = 0.0
        self.rate = None
        self.free_at = 0.0
        self.connections = set()
        self.held = self.refused = 0

    def counts(self):
        return Counts(len(self.connections) // 2, self.held, self.refused)

    def reset_all(self):
        for writer in list(self.connections):
            writer.transport.abort()

    def obey(self, line):
        word, *rest = line.split()
        if word == "pass":
            self.refusing, self.delay, self.rate = False, 0.0, None
            self.open.set()
            self.back_open.set()
        elif word == "cut":
            self.refusing = True
            self.reset_all()
        elif word == "stall":
            self.open.clear()
        elif word == "one-way":
            self.back_open.clear()
        elif word == "delay":
            self.delay = float(rest[0])
        elif word == "rate":
            self.rate = float(rest[0])
        elif word == "target":
            self.target = (rest[0], int(rest[1]))
            self.reset_all()
        else:
            raise ValueError(line)

    async def let_pass(self, back, size):
        """Waits until a chunk may go on."""
        if not self.open.is_set() or (back and not self.back_open.is_set()):
            self.held += 1
        if back and self.rate:
            self.held += size / self.rate > self.NOTICEABLE
            self.free_at = max(self.free_at, time.monotonic()) + size / self.rate
            await asyncio.sleep(self.free_at - time.monotonic())
        await self.open.wait()
        if back:
            await self.back_open.wait()

    async def copy(self, reader, writer, back):
        """Copies one direction: one task reads and stamps, another delivers when the time has come."""
        chunks = asyncio.Queue(PAST)

        async def read():
            try:
                while data := await reader.read(CHUNK):
                    await chunks.put((time.monotonic() + self.delay, data))
            except OSError:
                pass
            await chunks.put((0, b""))

        reading = asyncio.create_task(read())
        try:
            while True:
                due, data = await chunks.get()
                if not data:
                    break
                if (wait := due - time.monotonic()) > 0:
                    self.held += 1
                    await asyncio.sleep(wait)
                await self.let_pass(back, len(data))
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            reading.cancel()
            writer.close()

    async def serve(self, reader, writer):
        if self.refusing:
            self.refused += 1
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self.connections |= {writer, there_writer}
        try:
            await asyncio.gather(self.copy(reader, there_writer, False), self.copy(there_reader, writer, True))
        finally:
            self.connections -= {writer, there_writer}


async def serve(listen, host, port):
    traffic = Traffic(host, port)
    server = await asyncio.start_server(traffic.serve, "127.0.0.1", listen)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    print("ok", *traffic.counts(), flush=True)
    while line := await commands.readline():
        counts = traffic.counts()
        traffic.obey(line.decode())
        print("ok", *counts, flush=True)
    server.close()
    traffic.reset_all()


class Proxy:
    """The handle of a proxy process; it ends when its standard input is closed."""

    def __init__(self, listen, port, host="127.0.0.1"):
        self.port = listen
        self.child = subprocess.Popen(
            [sys.executable, "-m", "chaos.proxy", str(listen), host, str(port)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.answer()

    def answer(self):
        word, *counts = self.child.stdout.readline().split() or [""]
        if word != "ok":
            raise ChaosError("the proxy has ended")
        return Counts(*map(int, counts))

    def tell(self, command):
        """Gives a command, and returns what was counted until then."""
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        return self.answer()

    def close(self):
        self.child.kill()
        self.child.wait(10)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
