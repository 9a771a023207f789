"""Runs beside each other, each in a process of its own: servers are tied to the thread that starts them."""

import ctypes
import multiprocessing
import signal
from multiprocessing.connection import wait

from chaos import course

PR_SET_PDEATHSIG = 1
processes = multiprocessing.get_context("fork")


def run_all(cells, jobs, take, run=course.run):
    """Runs cells in their order, so many at a time, and hands each result to `take`. Cells that measure follow, alone."""
    for at_once, some in ((jobs, [cell for cell in cells if not cell.fault.alone]),
                          (1, [cell for cell in cells if cell.fault.alone])):
        run_beside(some, at_once, take, run)


def run_beside(cells, jobs, take, run):
    waiting, running = list(cells), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.pop(0)
                pipe, theirs = processes.Pipe(duplex=False)
                process = processes.Process(target=work, args=(run, cell, theirs), name=str(cell))
                process.start()
                theirs.close()
                running[pipe] = cell, process
            for pipe in wait(running):
                cell, process = running.pop(pipe)
                take(outcome(cell, process, pipe, min(jobs, len(cells))))
    finally:
        # Each of them removes its servers when it is told to end.
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def work(run, cell, pipe):
    # Ctrl-C reaches all processes of a terminal; the first one tells the others, also by its death.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    pipe.send(run(cell))


def outcome(cell, process, pipe, beside):
    """The result of a process; one that ends without a result has failed."""
    try:
        result = pipe.recv()
    except EOFError:
        process.join()
        result = course.Result(str(cell), problems=[f"the run ended with {process.exitcode} and without a result"])
    process.join()
    pipe.close()
    result.beside = beside
    return result
