"""The commands of api/docs/commands.md work as they stand there, and the page names every command that it is about."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import docs_test  # noqa: E402
import mill  # noqa: E402

PAGE = "api/docs/commands.md"


class CommandsPage(unittest.TestCase):
    run_block = docs_test.Commands.run_block
    server_that_compiled = docs_test.Commands.server_that_compiled

    def test_the_blocks_run(self):
        server = self.server_that_compiled()
        package = server.request("GET", "/v1/packages").json()["items"][0]["id"]
        answer = server.send_json("PUT", "/v1/deployments/digits", {"package": package})
        self.assertIn(answer.status, (200, 201))
        with tempfile.TemporaryDirectory() as folder:
            out = [self.run_block(block.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}"), folder)
                   for block in docs_test.shell_blocks(PAGE)]
        for words, text in zip(("HTTP status 422", " %  7\n", "100 requests/s"), (out[0], out[1], out[2])):
            self.assertIn(words, text)

    def test_forms_are_those_of_the_program(self):
        text = (docs_test.ROOT / PAGE).read_text()
        for form in mill.check_program(self, "detect", "--help").split("{", 1)[1].split("}", 1)[0].split(","):
            if form != "auto":
                self.assertIn(f"`{form}`", text)


if __name__ == "__main__":
    unittest.main()
