"""Loops that only their input ends, behind HTTP: one without end is stopped by a deadline, and holds up nobody after it."""

import unittest

import loop_models
import numpy as np
import serving

# What a run that ends may take on a busy machine; every loop without end takes it whole.
RUN_TIMEOUT = "4s"
ENDS, ENDLESS = (0.5, 20), (0, 1)


def inputs(step, bound):
    return {"step": np.float32(step), "bound": np.float32(bound)}


class EndlessLoops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls, "--set", f"run.timeout={RUN_TIMEOUT}")
        for name, last_too in (("stepping", False), ("endless_on_zeros", True)):
            assert cls.server.upload(name, loop_models.stepping(last_too)).status == 201
        cls.packages = {name: cls.server.compile(name, {}) for name in ("stepping", "endless_on_zeros")}

    def check_late(self, answer):
        self.assertEqual(answer.status, 504, answer.body)
        self.assertEqual(answer.json()["code"], "deadline_exceeded")

    def check_result(self, answer):
        self.assertEqual(answer.status, 200, answer.body)
        (result,) = serving.from_npz(answer.body).values()
        self.assertEqual(result, 20)

    def test_a_run_without_end_is_stopped(self):
        package = self.packages["stepping"]
        answer = self.server.run(package, inputs(*ENDLESS))
        self.check_late(answer)
        self.assertRegex(answer.json()["detail"], r"in iteration \d+ of the loop of node")
        self.check_late(self.server.run(package, inputs(*ENDLESS), "?timeout_ms=50"))
        self.check_result(self.server.run(package, inputs(*ENDS)))

    def test_a_deployment_is_free_after_it(self):
        answer = self.server.deploy("stepping", self.packages["stepping"], version="1", instances=1)
        self.assertEqual(answer.status, 201, answer.body)
        for _ in range(2):
            self.check_late(self.server.infer("stepping", inputs(*ENDLESS)))
            self.check_result(self.server.infer("stepping", inputs(*ENDS)))

    def test_a_warm_up_without_end_fails_the_deployment(self):
        package = self.packages["endless_on_zeros"]
        answer = self.server.deploy("warm", package, version="1")
        self.assertEqual(answer.status, 422, answer.body)
        self.assertIn("warm-up", answer.json()["detail"])
        self.assertEqual(self.server.request("GET", "/readyz").status, 200)
        answer = self.server.deploy("cold", package, version="1", warmup=False)
        self.assertEqual(answer.status, 201, answer.body)
        answer = self.server.infer("cold", inputs(0.5, 19.5))
        self.check_result(answer)


if __name__ == "__main__":
    unittest.main()
