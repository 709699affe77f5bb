"""A sample of bodies that mean harm against every endpoint that takes one: the server answers each, at a bounded cost, and goes
on serving. All of them, at their full size: hostile_requests.py --full."""

import tempfile
import unittest
import urllib.request

import hostile_bodies
import hostile_requests as hostile
import serving

SEED = 33
# The large ones are a sixteenth of their size.
SCALE = 1 / 16
BUDGET = 96 << 20


class HostileRequests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.server, cls.names = hostile.prey(folder.name, "--set", f"limits.memory_in_flight={BUDGET}", "--set",
                                             "limits.tensor_bytes=32MiB", "--ops-listen", "127.0.0.1:0")
        cls.addClassCleanup(cls.server.stop)
        cls.made = hostile_bodies.attacks(SEED, SCALE)
        cls.targets = hostile.endpoints(cls.server, cls.names)

    def test_every_endpoint_with_a_body_is_attacked(self):
        paths = " ".join(path for _, path in self.targets)
        for part in ("/v1/models?", "/v1/jobs", "/infer", "/classify", "/run", "/v1/tuning-records", "{upload}", "/v1/packages",
                     "/v1/targets/parse", "/v2/repository/index", "/load", "/versions/1/infer"):
            self.assertIn(part, paths)
        self.assertGreaterEqual(len(self.made), 31)

    def test_each_is_answered_at_a_bounded_cost(self):
        for attack, target in hostile.sampled(SEED, self.made, self.targets, 0):
            with self.subTest(attack=attack.name, target=target):
                cost = hostile.measured(self.server, attack, target)
                self.assertTrue(cost.status is None or cost.status in hostile.ANSWERED, str(cost))
                self.assertLessEqual(cost.cpu, hostile.CPU_BAR_S, str(cost))
                self.assertLessEqual(cost.grown, 2 * BUDGET, str(cost))
        self.assertEqual(hostile.infer_once(self.server).status, 200)

    def test_a_crowd_stays_within_the_memory_of_requests_in_flight(self):
        before = hostile.memory(self.server.process.pid, "VmRSS")
        statuses, peak, served = hostile.crowd(self.server, self.made, 16, 1)
        self.assertLessEqual(set(statuses), hostile.ANSWERED)
        # What the allocator keeps and the stacks of threads come on top.
        self.assertLessEqual(peak - before, BUDGET + BUDGET // 2 + (64 << 20), statuses)
        self.assertIn(200, served)
        self.assertEqual(served[-1], 200)
        serving.wait_for(lambda: "memory_in_flight_bytes 0\n" in metrics(self.server), "all memory is given back")


def metrics(server):
    line = next(line for line in server.settings if line.startswith("metrics on "))
    with urllib.request.urlopen(line.split(" ")[2]) as answer:
        return answer.read().decode()


if __name__ == "__main__":
    unittest.main()
