"""Every command of the documents' pages runs as it is written, and those in running text exist."""

import re
import shutil
import subprocess
import tempfile
import unittest
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/docs")]

import mill  # noqa: E402
import pages  # noqa: E402

# Languages of blocks that nothing runs: examples of data, and of languages whose compilers the tests do not install.
SHOWN = {"json", "toml", "text", "rust", "go"}
COMMAND = re.compile(r"^\s*(?:\$ )?(?:tensormill|curl|pip|apt-get|docker|\./dev|cmake)\b", re.MULTILINE)
INLINE = re.compile(r"`tensormill ([^`]+)`")
OPTION = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w-]*)")
# Whose blocks another test runs.
ELSEWHERE = {"reference/http-rules.md"}


def name_of(path):
    return str(path.relative_to(pages.PAGES))


class PagesRun(unittest.TestCase):
    def run_page(self, name, environment=None):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(ROOT / "tests/models/digits.onnx", Path(folder) / "digits.onnx")
            shutil.copyfile(ROOT / "tests/fixtures/tflite/net_float32.tflite", Path(folder) / "net.tflite")
            shutil.copyfile(ROOT / "tests/fixtures/keras/net.keras", Path(folder) / "net.keras")
            shutil.copyfile(ROOT / "tests/fixtures/pytorch_script/residual_traced.pt", Path(folder) / "traced.pt")
            shutil.unpack_archive(ROOT / "tests/fixtures/tensorflow_nets/mobile.zip", folder)
            (Path(folder) / "mobile").rename(Path(folder) / "saved")
            shutil.unpack_archive(ROOT / "tests/fixtures/coreml_nets/mobile.zip", folder)
            shutil.copyfile(ROOT / "tests/fixtures/mxnet_nets/resmobile.zip", Path(folder) / "resmobile.zip")
            shutil.copyfile(ROOT / "tests/fixtures/caffe2_nets/squeeze.zip", Path(folder) / "squeezenet.zip")
            shutil.copyfile(ROOT / "tests/fixtures/cntk_nets/mlp.model", Path(folder) / "classifier.model")
            found = pages.blocks(pages.PAGES / name)
            for block in found:
                if block.file:
                    (Path(folder) / block.file).write_text(block.text, encoding="utf-8")
            return pages.run_script("".join(block.text for block in found if block.language == "sh"), folder, environment)

    def test_first_model(self):
        self.assertRegex(self.run_page("tutorials/first-model.md"), r'"label" *: *"7"')

    def test_tune(self):
        self.assertIn("mean", self.run_page("tutorials/tune.md"))

    def test_compare(self):
        said = self.run_page("tutorials/compare.md")
        self.assertRegex(said, r"digits native O3 .* samples/s +100\.00 % right")
        self.assertRegex(said, r"net native O3 .* samples/s +100\.00 % right")
        self.assertRegex(said, r"small native O3 .* samples/s +\d+\.\d\d % right")
        for net in ("shapes", "shapes_int8"):
            right = int(re.search(rf"(?m)^\S*{net}(?:\.tflite)? is right in (\d+)%$", said)[1])
            self.assertGreater(right, 60, net)
        self.assertIn("  star is taken for cross: ", said)

    def test_board(self):
        self.assertIn("aarch64", self.run_page("tutorials/board.md"))

    def test_production(self):
        said = self.run_page("tutorials/production.md")
        self.assertIn("http_requests_total", said)
        self.assertIn("http.workers = 64", said.replace("workers = 64", "http.workers = 64"))

    def test_free_dims(self):
        self.assertRegex(self.run_page("how-to/free-dims.md"), r"f32\[N,10\]")

    def test_other_formats(self):
        self.assertRegex(self.run_page("how-to/other-formats.md"), r"%image: f32\[image_0,8,8,3\]")

    def test_embed(self):
        with tempfile.TemporaryDirectory() as prefix:
            subprocess.run(["cmake", "--install", ROOT / "build", "--component", "dev", "--prefix", prefix], check=True,
                           capture_output=True)
            said = self.run_page("how-to/embed.md", {"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig",
                                                     "LD_LIBRARY_PATH": f"{prefix}/lib"})
        self.assertRegex(said, r"(?m)^\d$")
        self.assertIn("10 numbers", said)
        self.assertEqual(said.count("10 bundled numbers"), 2)

    def test_keys_and_tls(self):
        self.assertIn("camera", self.run_page("how-to/keys-and-tls.md"))

    def test_share_packages(self):
        self.assertIn('"digits"', self.run_page("how-to/share-packages.md"))

    def test_care_for_a_store(self):
        self.run_page("how-to/care-for-a-store.md")

    def test_second_machine(self):
        """The page's two machines are one folder."""
        said = self.run_page("how-to/second-machine.md")
        self.assertIn('"name":"desk"', said)
        self.assertIn('"median_ms"', said)
        self.assertIn("result: taken", said)

    def test_board_on_my_desk(self):
        said = self.run_page("how-to/board-on-my-desk.md")
        self.assertRegex(said, r"the model on board=desk: \d+\.\d+ -> \d+\.\d+ ms after 16 trials")
        self.assertIn("mean (ms)", said)

    def test_look_inside(self):
        self.assertIn("conv", self.run_page("how-to/look-inside.md"))

    def test_pictures_load_reports(self):
        said = self.run_page("how-to/pictures-load-reports.md")
        for words in ("HTTP status 422", " %  class 7\n", "100 requests/s, even: 50 of 50 answered"):
            self.assertIn(words, said)

    def test_every_page_with_commands_is_run(self):
        """Here, each by a test of its name."""
        with_commands = {name_of(path) for path in pages.pages() if pages.shell_blocks(path)} - ELSEWHERE
        tests = {name[len("test_"):] for name in dir(self) if name.startswith("test_")}
        self.assertEqual([name for name in sorted(with_commands) if Path(name).stem.replace("-", "_") not in tests], [])


class PagesSay(unittest.TestCase):
    maxDiff = None

    def test_what_a_page_starts_it_ends(self):
        """Else the next page's server finds its port taken, and its commands talk to the one before."""
        for path in pages.pages():
            script = "".join(pages.shell_blocks(path))
            started = re.findall(r"(?<!&)&\n(.*)\n", script)
            for line in started:
                with self.subTest(page=name_of(path), behind=line):
                    process = re.fullmatch(r"(\w+)=\$!", line)
                    self.assertIsNotNone(process)
                    self.assertRegex(script, f'(?m)^kill (-TERM )?"\\${process[1]}"$')

    def test_no_command_hides_in_a_block_that_is_not_run(self):
        wrong = []
        for path in [*pages.pages(), ROOT / "README.md"]:
            for block in pages.blocks(path):
                runs = block.language in ("sh", "python") or block.file
                if not runs and (block.language not in SHOWN or COMMAND.search(block.text)) and path.name != "README.md":
                    wrong.append(f"{path.name}: {block.language}: {block.text[:60]}")
        self.assertEqual(wrong, [])

    def test_commands_in_the_text_exist(self):
        helps = {}

        def help_of(*words):
            if words not in helps:
                helps[words] = mill.run_program(*words, "--help").stdout
            return helps[words]

        wrong = []
        for path in [*pages.pages(), ROOT / "README.md"]:
            text = pages.BLOCK.sub("", path.read_text(encoding="utf-8"))
            for command in INLINE.findall(text):
                words = command.split()
                # `demo` is of the wheel, COMMAND stands for each.
                if words[0] in ("demo", "COMMAND") or not re.match(r"[a-z]", words[0]):
                    continue
                known = help_of(words[0]) + help_of()
                below = [word for word in words[1:] if re.search(rf"^  {re.escape(word)} ", help_of(words[0]), re.MULTILINE)]
                known += "".join(help_of(words[0], word) for word in below if not word.startswith("-"))
                if not re.search(rf"^  {re.escape(words[0])}\b", help_of(), re.MULTILINE):
                    wrong.append(f"{path.name}: no command {command}")
                wrong += [f"{path.name}: no option {option}: {command}" for option in OPTION.findall(command)
                          if not re.search(rf"(?<![\w-]){re.escape(option)}\b", known)]
        self.assertEqual(wrong, [])

    def test_foreign_declarations_are_the_headers(self):
        """Rust and Go name functions of the C interface with as many arguments as it has."""
        header = (ROOT / "runtime/capi/tensormill.h").read_text(encoding="utf-8")
        arguments = {name: 0 if given.strip() == "void" else given.count(",") + 1
                     for name, given in re.findall(r"\b(tm_\w+)\(([^;]*?)\);", header, re.DOTALL)}
        wrong, seen = [], 0
        for block in pages.blocks(pages.PAGES / "how-to/embed.md"):
            if block.language not in ("rust", "go"):
                continue
            for name, given in re.findall(r"\b(tm_\w+)\(((?:[^()]|\([^()]*\))*)\)", block.text):
                seen += 1
                if arguments.get(name) != (given.count(",") + 1 if given.strip() else 0):
                    wrong.append(f"{block.language}: {name}({given})")
        self.assertGreater(seen, 8)
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
