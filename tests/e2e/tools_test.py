"""The commands for people: help, explain, doctor, classify; what a terminal is shown, and what a pipe."""

import json
import os
import pty
import re
import shlex
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import mill

DIGITS = mill.ROOT / "tests/models/digits.onnx"
PICTURES = mill.ROOT / "tests/models/pictures"
LABELS = mill.ROOT / "tests/models/digits.labels.txt"
CLI = mill.ROOT / "server/cli"


def rows(path, macro):
    """The rows of a table, each the list of its strings; strings that stand beside each other are one."""
    text = re.sub(r"^//.*$", "", (mill.ROOT / path).read_text(), flags=re.MULTILINE)
    found = []
    for row in re.split(rf"^{macro}\(", text, flags=re.MULTILINE)[1:]:
        joined = re.sub(r'"\s*\n\s*"', "", row)
        found.append([json.loads(word) for word in re.findall(r'"(?:[^"\\]|\\.)*"', joined)])
    return found


def on_terminal(*args, **variables):
    """What tensormill writes where all its streams are a terminal."""
    parent, child = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen([str(mill.PROGRAM), *map(str, args)], stdin=subprocess.DEVNULL, stdout=child, stderr=child,
                               env={**environment, "TERM": "xterm", **variables})
    os.close(child)
    text = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # the last writer has gone
            break
        if not part:
            break
        text += part
    os.close(parent)
    process.wait()
    return text.decode()


class Help(unittest.TestCase):
    def test_every_command_has_a_heading_and_examples(self):
        names = [row[0] for row in rows("server/cli/commands.def", "TM_COMMAND") if not row[0].startswith("-")]
        table = rows("server/cli/command_help.def", "TM_COMMAND_HELP")
        self.assertEqual(sorted(names), sorted(row[0] for row in table))
        text = mill.check_program(self, "--help")
        for name, group, _ in table:
            self.assertIn(f"\n{group}:\n", text)
            self.assertRegex(text, rf"(?m)^  {name} ")

    def test_examples_are_lines_that_the_program_takes(self):
        for name, _, examples in rows("server/cli/command_help.def", "TM_COMMAND_HELP"):
            text = mill.check_program(self, name, "--help")
            known = set(re.findall(r"(?<![\w-])-{1,2}[a-zA-Z][\w-]*", text)) | {"--json"}
            for line in examples.split("\n"):
                self.assertIn(line, text)
                words = shlex.split(line)
                self.assertEqual(words[:2], ["tensormill", name])
                below = [word for word in words if word in ("add", "list", "revoke", "check")]
                more = mill.check_program(self, name, below[0], "--help") if below else ""
                options = {word for word in words[2:] if re.match(r"-{1,2}[a-zA-Z]", word)}
                self.assertEqual({word for word in options if word not in known and word not in more}, set(), line)


class Explain(unittest.TestCase):
    def test_every_code_has_its_texts(self):
        codes = json.loads(mill.check_program(self, "explain", "--json"))["codes"]
        table = rows("runtime/base/error_codes.def", "TM_ERROR_CODE")
        self.assertEqual([code["code"] for code in codes], [row[0] for row in table])
        self.assertEqual([code["when"] for code in codes], [row[1] for row in table])
        for code in codes:
            for key in ("why", "what_to_do"):
                self.assertRegex(code[key], r"^\S.{20,}[.)]$", code["code"])
            one = mill.check_program(self, "explain", code["code"])
            for word in (code["code"], code["when"], code["why"], code["what_to_do"], f"exit code {code['exit_code']}"):
                self.assertIn(str(word), one)
        self.assertEqual(json.loads(mill.check_program(self, "explain", "disk_full", "--json")), next(
            code for code in codes if code["code"] == "disk_full"))
        listed = mill.check_program(self, "explain").splitlines()
        self.assertEqual([line.split()[0] for line in listed], [code["code"] for code in codes])

    def test_what_the_texts_name_is_there(self):
        """Commands, options, settings and endpoints that an advice names."""
        settings = {row[0] for row in rows("config/settings.def", "TM_SETTING")}
        routes = (mill.ROOT / "api/endpoints/routes.def").read_text()
        commands = {row[0] for row in rows("server/cli/commands.def", "TM_COMMAND")} | {"COMMAND"}
        for texts in rows("runtime/base/error_help.def", "TM_ERROR_HELP"):
            for text in texts:
                for name in re.findall(r"tensormill ([\w-]+)", text):
                    self.assertIn(name, commands, text)
                for name in re.findall(r"(?<![/\w])(?:http|limits|jobs|packages)\.\w+", text):
                    self.assertIn(name, settings, text)
                for method, path in re.findall(r"(GET|POST) (/[\w/.-]*\w)", text):
                    path = path.replace("/ID/", "/{job}/")
                    self.assertIn(f'"{method}", "{path}"', routes, text)

    def test_a_code_that_is_none(self):
        done = mill.run_program("explain", "invalid_npx")
        self.assertEqual(done.returncode, 2)
        self.assertIn('"invalid_npz"', done.stderr)
        self.assertEqual(mill.run_program("explain", "x" * 100_000).returncode, 2)
        self.assertEqual(mill.check_program(self, "explain", "disk-full"), mill.check_program(self, "explain", "disk_full"))


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def examine(self, listen="127.0.0.1:0", data=None):
        done = mill.run_program("doctor", "--json", "--listen", listen, "--data", data or self.folder)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 4 if report["bad"] else 0, done.stderr)
        return {(row["group"], row["name"]): row for row in report["findings"]}

    def test_it_looks_at_everything(self):
        found = self.examine()
        self.assertEqual({group for group, _ in found}, {"processor", "room", "walls", "network", "programs"})
        for row in found.values():
            self.assertTrue(row["says"])
            self.assertTrue(row["verdict"] != "good" or row["advice"] == "", row)
        shown = json.loads(mill.check_program(self, "compile", DIGITS, "--input-shapes", "image:[1,1,28,28]", "-O", 0,
                                              "-o", self.folder / "d.tar", "--json"))
        self.assertEqual(found["processor", "target"]["says"], shown["target"])
        self.assertEqual(list(self.folder.iterdir()), [self.folder / "d.tar"])
        text = mill.run_program("doctor", "--listen", "127.0.0.1:0", "--data", self.folder).stdout
        for group, name in found:
            self.assertRegex(text, rf"(?m)^{group}$")
            self.assertIn(name, text)

    def test_what_keeps_it_from_work(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            row = self.examine(listen=f"127.0.0.1:{port}")["network", "listen"]
        self.assertEqual(row["verdict"], "bad")
        self.assertIn("--listen", row["advice"])
        row = self.examine(data="/proc/none")["room", "store"]
        self.assertEqual((row["verdict"], "--data" in row["advice"]), ("bad", True))


class Classify(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.package = cls.folder / "digits.tar"
        done = mill.run_program("compile", DIGITS, "--input-shapes", "image:[N,1,28,28]", "--shape-buckets", "N=2", "-O", 1,
                                "-o", cls.package)
        assert done.returncode == 0, done.stderr

    def test_pictures_have_their_classes(self):
        pictures = sorted(PICTURES.glob("*.png"))
        report = json.loads(mill.check_program(self, "classify", self.package, *pictures, "--labels", LABELS, "--json"))
        labels = LABELS.read_text().split()
        for picture, row in zip(pictures, report["pictures"]):
            best = row["top"][0]
            self.assertEqual((row["picture"], best["label"]), (str(picture), labels[int(picture.stem)]))
            self.assertEqual(len(row["top"]), 5)
            self.assertEqual([one["label"] for one in row["top"]], [labels[one["index"]] for one in row["top"]])
            self.assertGreaterEqual(best["probability"], row["top"][1]["probability"])
        text = mill.check_program(self, "classify", self.package, PICTURES / "7.png", "--top", 1)
        self.assertRegex(text, r"^\S+7\.png\n +\d+\.\d\d %  class 7\n$")
        self.assertIn("class 7\n", mill.check_program(self, "classify", self.package, PICTURES / "7.png", "--top", 1, "--layout", "NCHW"))

    def test_one_bad_picture_does_not_hide_the_others(self):
        bad = self.folder / "bad\x1b[2J.png"
        bad.write_bytes(b"no picture")
        done = mill.run_program("classify", self.package, PICTURES / "3.png", bad, PICTURES / "4.png", "--json")
        self.assertEqual(done.returncode, 3)
        rows_ = json.loads(done.stdout)["pictures"]
        self.assertEqual([row.get("top", [{"index": None}])[0]["index"] for row in rows_], [3, None, 4])
        self.assertEqual(rows_[1]["error"]["code"], "unsupported_media_type")
        self.assertNotIn("\x1b", done.stderr)

    def test_what_is_refused(self):
        for code, words, args in ((3, "none.png", ["none.png"]), (2, "--mean", [PICTURES / "1.png", "--mean", "1,2"]),
                                  (2, "--std", [PICTURES / "1.png", "--std", "0"]),
                                  (3, "none.txt", [PICTURES / "1.png", "--labels", "none.txt"]),
                                  (3, "UTF-8", [PICTURES / "1.png", "--labels", PICTURES / "1.png"]),
                                  (3, "preprocess", [PICTURES / "1.png", "--mean", "1,2,3"]),
                                  (3, '"other"', [PICTURES / "1.png", "--scores", "other"]),
                                  (3, "[1,28,28,1]", [PICTURES / "1.png", "--input-shapes", "image:[1,28,28,1]"])):
            done = mill.run_program("classify", self.package, *args)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)


class Terminals(unittest.TestCase):
    def test_colours_on_a_terminal_alone(self):
        self.assertIn("\x1b[1mdisk_full\x1b[0m", on_terminal("explain", "disk_full"))
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b", on_terminal("explain", "disk_full", **variables))
        self.assertNotIn("\x1b", mill.check_program(self, "explain", "disk_full"))

    def test_progress_on_a_terminal_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            line = ["compile", DIGITS, "--input-shapes", "image:[1,1,28,28]", "-O", 0, "-o", Path(folder) / "d.tar"]
            shown = on_terminal(*line)
            self.assertRegex(shown, r"\r\[#+\.*\] \d+/\d+ kernels")
            # Gone before the report.
            self.assertRegex(shown, r"\r\x1b\[K[^\r\n]*d\.tar: ")
            self.assertEqual(mill.run_program(*line).stderr, "")

    def test_an_error_leads_to_its_explanation(self):
        self.assertIn("tensormill explain not_found", on_terminal("show", "none.onnx"))
        self.assertEqual(mill.run_program("show", "none.onnx").stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
