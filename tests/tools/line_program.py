"""A process that answers each line with a line."""

import subprocess
import threading

TIMEOUT_S = 120


class LineProgram:
    """A new process is started after a crash or a time-out. `options` are subprocess.Popen's. One thread asks at a time."""

    def __init__(self, command, timeout=TIMEOUT_S, **options):
        self.command, self.timeout, self.options, self.process, self.lock = command, timeout, options, None, threading.Lock()

    def ask(self, line):
        with self.lock:
            return self.answer(line)

    def answer(self, line):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **self.options)
        watchdog = threading.Timer(self.timeout, self.process.kill)
        watchdog.start()
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        watchdog.cancel()
        if not answer:
            code = self.process.wait()
            self.close()
            return f"error the program ended with code {code}"
        return answer

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None
