"""The database's clock is set by an hour, by libfaketime preloaded into the server."""

import glob
import os

from chaos.faults.fault import TAKEOVER, Fault
from chaos.processes import ChaosError


def library():
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    return found[0] if found else None


def remove_shared_memory():
    """Removes what the library leaves behind of processes that were killed."""
    for file in glob.glob("/dev/shm/faketime_shm_*") + glob.glob("/dev/shm/sem.faketime_sem_*"):
        if not os.path.exists(f"/proc/{file.rpartition('_')[2]}"):
            os.unlink(file)


class Clock(Fault):
    hours = 0
    duplicates = "a lease that seems to have ended: what its node has under way is delivered by the next owner as well"
    allowed_gap = TAKEOVER
    lines_may_break = True

    def unavailable(self):
        return None if library() else "libfaketime is missing; install Debian's package libfaketime"

    def arrange(self, world):
        # What is registered first ends last: by then the server is gone.
        world.stack.callback(remove_shared_memory)
        self.file = world.path("clock")
        self.set(0)
        env = {"FAKETIME_TIMESTAMP_FILE": self.file, "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
               "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        world.create_database(env=env, preload=library())
        world.migrate()

    def set(self, hours):
        with open(self.file + ".new", "w") as file:
            file.write(f"{hours * 3600:+d}\n")
        os.chmod(self.file + ".new", 0o644)
        os.replace(self.file + ".new", self.file)

    def jump(self, world):
        """Sets the clock. A connection that was open before, as those of the relays are, has to see it."""
        session = world.database.session()
        try:
            before = clock_of(world.database, session)
            self.set(self.hours)
            went = clock_of(world.database, session) - before
        finally:
            session.close()
        world.say(f"the clock went by {went:.0f} s")
        if abs(went - self.hours * 3600) > 60:
            raise ChaosError(f"the database's clock went by {went:.0f} s, and not by {self.hours * 3600}")

    def strike(self, world):
        self.jump(world)
        world.pause(self.lease)
        # A node that dies now has a lease by the new clock, or by the old one.
        node = world.active_node()
        node.kill()
        world.go_on_without(node, self.lease + 1)
        world.start_node()
        world.wait_for_arrivals()


def clock_of(database, session):
    """The database's time, in seconds since 1970."""
    printed = session.run(f"{database.WALL_CLOCK};")
    if not printed:
        raise ChaosError("the database did not tell its time")
    return float(printed[-1])


class ClockForward(Clock):
    name = "clock-forward"
    summary = "the database's clock is set an hour forward; then the delivering node is killed"
    hours = 1


class ClockBack(Clock):
    name = "clock-back"
    summary = "the database's clock is set an hour back; then the delivering node is killed"
    hours = -1


FAULTS = [ClockForward, ClockBack]
