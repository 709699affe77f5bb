"""What a server's process holds: resident memory after it has given back what is free, open files, and their trend."""

import itertools
import statistics
from pathlib import Path


def resident_kib(pid):
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def open_files(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def trimmed_kib(server):
    """Resident memory after a collection, with which the server also gives free memory back to the system."""
    answer = server.request("POST", "/v1/gc")
    if answer.status != 200:
        raise RuntimeError(f"gc: {answer.status} {answer.body[:200]}")
    return resident_kib(server.process.pid)


def growth_kib(samples):
    """By how much the (seconds, KiB) samples of the second half rise from its first to its last: the median of the slopes
    between any two of them (Theil and Sen), which a sample that is off leaves as it is."""
    half = [one for one in samples if one[0] >= (samples[0][0] + samples[-1][0]) / 2]
    slopes = [(later[1] - one[1]) / (later[0] - one[0]) for one, later in itertools.combinations(half, 2)]
    return statistics.median(slopes) * (half[-1][0] - half[0][0]) if slopes else 0.0
