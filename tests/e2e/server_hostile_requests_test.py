"""A sample of bodies that mean harm against every endpoint that takes one: the server answers each, at a bounded cost, and goes
on serving. All of them, at their full size: hostile_requests.py --full."""

import json
import re
import signal
import tempfile
import unittest

import hostile_bodies
import hostile_requests as hostile
import mill
import serving

SEED = 33
# The large ones are a sixteenth of their size.
SCALE = 1 / 16
BUDGET = 96 << 20
# What is said before a body is looked at.
UNREAD = {"unauthorized", "forbidden", "not_found", "method_not_allowed", "not_supported"}
UNREAD_TYPE = "content type is"


def prey(test, *options):
    """A server for a test or a class, and the names of what it has."""
    add = test.addClassCleanup if isinstance(test, type) else test.addCleanup
    folder = tempfile.TemporaryDirectory()
    add(folder.cleanup)
    server, names = hostile.prey(folder.name, *options)
    add(server.stop, signal.SIGKILL)
    return server, names


def routes_with_bodies():
    """(method, path) of the table's rows whose body is read."""
    rows = re.findall(r'^TM_ROUTE\(\w+, "(\w+)", "([^"]+)", \w+, (\w+), "[^"]*", "(\w*)"',
                      (mill.ROOT / "api/endpoints/routes.def").read_text(), re.MULTILINE)
    return {(method, path) for method, path, body, request in rows if body != "kNone" and (body != "kControl" or request)}


class HostileRequests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.names = prey(cls, "--set", f"limits.memory_in_flight={BUDGET}", "--set", "limits.tensor_bytes=32MiB")
        cls.made = hostile_bodies.attacks(SEED, SCALE)
        cls.targets = hostile.endpoints(cls.server, cls.names)

    def test_every_endpoint_with_a_body_is_attacked(self):
        self.assertEqual({(target.method, target.template) for target in self.targets}, routes_with_bodies())
        self.assertGreaterEqual(len(self.made), 31)

    def test_each_endpoint_reads_what_it_is_sent(self):
        wrong = hostile_bodies.Attack("no JSON, no archive, no picture", hostile_bodies.JSON, None, lambda: b"{")
        for target in self.targets:
            with self.subTest(target=str(target)):
                status, body = hostile.exchange(self.server, target, wrong)
                self.assertGreaterEqual(status, 200)
                if status >= 400:
                    problem = json.loads(body)
                    self.assertNotIn(problem["code"], UNREAD, body)
                    self.assertNotIn(UNREAD_TYPE, problem["detail"])

    def test_each_is_answered_at_a_bounded_cost(self):
        for attack, target in hostile.sampled(SEED, self.made, self.targets, 0):
            with self.subTest(attack=attack.name, target=str(target)):
                cost = hostile.measured(self.server, attack, target)
                self.assertTrue(cost.status is None or cost.status in hostile.ANSWERED, str(cost))
                self.assertLessEqual(cost.cpu, hostile.CPU_BAR_S, str(cost))
                self.assertLessEqual(cost.grown, 2 * BUDGET, str(cost))
        self.assertEqual(hostile.infer_once(self.server).status, 200)

    def test_a_crowd_stays_within_the_memory_of_requests_in_flight_and_others_are_served(self):
        before = hostile.memory(self.server.process.pid, "VmRSS")
        statuses, peak, _ = hostile.crowd(self.server, self.made, self.targets, self.names, 16, 1)
        self.assertLessEqual(set(statuses), hostile.ANSWERED)
        # What the allocator keeps and the stacks of threads come on top.
        self.assertLessEqual(peak - before, BUDGET + BUDGET // 2 + (64 << 20), statuses)
        serving.wait_for(lambda: "memory_in_flight_bytes 0\n" in self.server.metrics(), "all memory is given back")


class HostileEnd(unittest.TestCase):
    def test_bodies_that_still_come_do_not_hold_the_end_up(self):
        server, names = prey(self, "--set", "http.drain_timeout=500ms")
        code, _ = hostile.end_within(server, hostile.endpoints(server, names))
        self.assertEqual(code, 0)


if __name__ == "__main__":
    unittest.main()
