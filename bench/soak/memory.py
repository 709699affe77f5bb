"""What a server's process holds: resident memory after it has given back what is free, open files, and their trend."""

from pathlib import Path

import numpy as np


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
    """By how much a line through the (seconds, KiB) samples rises from the first to the last."""
    times, sizes = np.array(samples, dtype=np.float64).T
    if len(samples) < 2 or times[-1] == times[0]:
        return 0.0
    return float(np.polyfit(times - times[0], sizes, 1)[0] * (times[-1] - times[0]))
