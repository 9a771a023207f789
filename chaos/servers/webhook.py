"""A webhook endpoint, as a process of its own: it records each event and answers, late or not at all if it is told to.

    python3 -m chaos.servers.webhook PORT RECORD SECONDS SILENT

It answers after SECONDS. Of every SILENT requests it records one and cuts the connection in the place of an answer (0: none).
"""

import asyncio
import socket
import sys

from chaos.events import Received, hasher
from chaos.processes import Process, free_port, wait_until


class Webhook:
    """The handle of such a process."""

    kind = "webhook"
    target = "events"

    def __init__(self, folder, *, seconds=0.0, silent=0, name="webhook"):
        self.name, self.port, self.record = name, free_port(), f"{folder}/{name}.ids"
        open(self.record, "a").close()
        command = [sys.executable, "-m", "chaos.servers.webhook", self.port, self.record, seconds, silent]
        self.process = Process(command, f"{folder}/{name}.log")

    def create(self):
        return self.start()

    def start(self):
        self.process.start()
        wait_until("the endpoint listens", self.listens, 20)
        return self

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def close(self):
        self.process.kill()

    def section(self, extra=""):
        return (f'[publisher.{self.name}]\nkind = "webhook"\nurl = "http://127.0.0.1:{self.port}/"\n'
                f'allow_private = true\n{extra}\n')

    def consume(self):
        with open(self.record) as record:
            return [Received(*line.split()) for line in record]


async def serve(reader, writer, record, seconds, silent):
    try:
        while head := await request_head(reader):
            method, headers = head
            left, payload = int(headers.get("content-length", 0)), hasher()
            while left > 0:
                left -= len(data := await reader.read(min(left, 262144)))
                if not data:
                    return
                payload.update(data)
            if method == "POST":
                if seconds:
                    await asyncio.sleep(seconds)
                record.write(f"{headers['webhook-id']} {headers.get('event-key', '-')} {payload.hexdigest()}\n")
                record.flush()
                record.count += 1
                if silent and record.count % silent == 0:
                    writer.transport.abort()
                    return
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def request_head(reader):
    line = await reader.readline()
    if not line:
        return None
    headers = {}
    while (entry := await reader.readline()).strip():
        name, _, value = entry.decode().partition(":")
        headers[name.strip().lower()] = value.strip()
    return line.split()[0].decode(), headers


class Record:
    """The file of the events, and how many there are."""

    def __init__(self, path):
        self.file, self.count = open(path, "a"), 0
        self.write, self.flush = self.file.write, self.file.flush


async def main(port, path, seconds, silent):
    record = Record(path)
    server = await asyncio.start_server(lambda reader, writer: serve(reader, writer, record, seconds, silent),
                                        "127.0.0.1", port, limit=1 << 20)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
