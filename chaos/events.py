"""Events as they are written and as they arrive. Of a payload only a digest is kept, since some are large.

>>> payload("e-1", 3)
'{"id": "e-1", "note": "xxx"}'
>>> event("e-1", "k", 3) == Event("k", digest(b'{"id": "e-1", "note": "xxx"}'))
True
"""

import hashlib
from collections import namedtuple

Event = namedtuple("Event", "key payload")
#: An event as a consumer got it.
Received = namedtuple("Received", "event_id key payload")


def payload(event_id, note=0):
    """The text of a payload: no two events have the same one."""
    return f'{{"id": "{event_id}", "note": "{"x" * note}"}}'


def event(event_id, key, note=0):
    """What has to arrive of an event with such a payload."""
    return Event(key, digest(payload(event_id, note)))


def digest(data):
    return hasher(data.encode() if isinstance(data, str) else data).hexdigest()


def hasher(data=b""):
    """Takes a payload in pieces, by `update`."""
    return hashlib.blake2b(data, digest_size=8)
