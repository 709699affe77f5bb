"""What the Debian package has beside the program: man pages, completions, the unit, the settings."""

import configparser
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import mill  # noqa: E402

FOLDER = ROOT / "config/package"


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = Path(folder.name)
        subprocess.run([sys.executable, str(FOLDER / "describe_cli.py"), str(mill.PROGRAM), str(cls.out)], check=True)
        help_text = mill.run_program("--help").stdout
        cls.commands = re.findall(r"^  ([\w-]+) {2,}", help_text[help_text.index("Models and packages:"):], re.MULTILINE)

    def test_modules_that_the_program_loads_are_installed(self):
        lists = [path.read_text() for path in ROOT.glob("*/CMakeLists.txt")]
        modules = set(re.findall(r"^ *tm_module\((\S+) ", "\n".join(lists), re.MULTILINE))
        self.assertLessEqual({"tensormill-grpc", "tensormill-llvm"}, modules)
        steps = "\n".join(path.read_text() for path in (ROOT / "build").glob("*/cmake_install.cmake"))
        installed = set(re.findall(r'/lib/tensormill" TYPE MODULE FILES "[^"]*/bin/(\S+)\.so"', steps))
        self.assertEqual(installed, modules)

    def test_every_command_has_a_page(self):
        self.assertIn("compile", self.commands)
        pages = {path.name for path in (self.out / "man").iterdir()}
        self.assertLessEqual({"tensormill.1", "tensormill-keys-add.1"} | {f"tensormill-{name}.1" for name in self.commands}, pages)
        for path in (self.out / "man").iterdir():
            text = path.read_text()
            self.assertIn('"tensormill 0.1.0"', text.splitlines()[0])
            # A line that begins with a point is an instruction.
            known = {".TH", ".SH", ".TP", ".B", ".BR", ".nf", ".fi"}
            self.assertEqual({line.split()[0] for line in text.splitlines() if line[:1] in ".'"} - known, set(), path.name)
        page = (self.out / "man/tensormill-compile.1").read_text()
        self.assertIn(".B \\-O,\\-\\-opt\\-level INT:INT in [0 \\- 4]\n0 to 4", page)
        self.assertIn(".SH EXAMPLES\n.nf\ntensormill compile ", page)

    def complete(self, *words):
        script = (f"source {self.out}/bash/tensormill; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
                  'type _tensormill >/dev/null; _tensormill; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True, cwd=ROOT)
        return done.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(set(self.complete("tensormill", "''")) & set(self.commands), set(self.commands))
        self.assertEqual(self.complete("tensormill", "compile", "--verify", "f"), ["full"])
        self.assertEqual(self.complete("tensormill", "compile", "--opt"), ["--opt-level"])
        self.assertEqual(self.complete("tensormill", "show", "tests/models/digits.o"), ["tests/models/digits.onnx"])
        self.assertEqual(self.complete("tensormill", "nonsense", "--x"), [])

    def test_other_shells_read_theirs(self):
        for name in self.commands:
            self.assertRegex((self.out / "zsh/_tensormill").read_text(), rf"(?m)^    {name}\)$")
            self.assertIn(f"-a {name} -d", (self.out / "fish/tensormill.fish").read_text())
        for shell, path in (("zsh", "zsh/_tensormill"), ("fish", "fish/tensormill.fish")):
            if shutil.which(shell):
                subprocess.run([shell, "-n", str(self.out / path)], check=True)

    def test_the_services_settings_are_known(self):
        done = mill.run_program("config", "check", "--config", FOLDER / "tensormill.toml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("data = '/var/lib/tensormill'", done.stdout)
        # What stands in it as an example as well.
        with_examples = self.out / "examples.toml"
        text = (FOLDER / "tensormill.toml").read_text()
        examples = re.findall(r"^# (\[?[a-z_]+\]?(?: = .*)?)$", text, re.MULTILINE)
        kept = [line for line in text.splitlines() if not line.startswith(("listen", "#"))]
        with_examples.write_text("\n".join(kept + examples) + "\n")
        done = mill.run_program("config", "check", "--config", with_examples)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("allowed_hosts = [ 'models.example.org' ]", done.stdout.replace("['", "[ '").replace("']", "' ]"))

    def test_the_unit(self):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read(FOLDER / "tensormill.service")
        service = unit["Service"]
        self.assertEqual(service["User"], "tensormill")
        self.assertEqual(service["ExecStart"].split()[:2], ["/usr/bin/tensormill", "serve"])
        for wall in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectKernelModules"):
            self.assertEqual(service[wall], "yes")
        self.assertEqual((service["ProtectSystem"], service["CapabilityBoundingSet"]), ("strict", ""))
        # Without both no child has a control group (server/jobs/child_cgroups.h).
        self.assertIn("memory", service["Delegate"].split())
        self.assertEqual(service["ProtectControlGroups"], "no")

    def test_the_package_works_by_itself(self):
        """As CPack makes it, unpacked beside what is installed here; config/package/prove installs it in a bare system."""
        def done(*words, folder=self.out):
            ended = subprocess.run([str(word) for word in words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(ended.returncode, 0, f"{words}\n{ended.stdout[-4000:]}")
            return ended.stdout

        done("cmake", "--build", ROOT / "build", "--target", "package_files")
        done("cpack", "-G", "DEB", "--config", ROOT / "build/CPackConfig.cmake", "-B", self.out / "deb")
        (package,) = (self.out / "deb").glob("tensormill_*.deb")
        fields = done("dpkg-deb", "-f", package)
        self.assertRegex(fields, r"(?m)^Depends: .*\blibc6 \(>= 2\.\d+\)")
        self.assertRegex(fields, r"(?m)^Depends: .*\blibllvm19\b")
        root = self.out / "unpacked"
        done("dpkg-deb", "-x", package, root)
        for name in ("etc/tensormill/tensormill.toml", "lib/systemd/system/tensormill.service", "share/man/man1/tensormill-compile.1",
                     "share/bash-completion/completions/tensormill", "share/doc/tensormill/copyright"):
            self.assertTrue(any((root / place / name).is_file() for place in ("", "usr")), name)
        program, models = root / "usr/bin/tensormill", ROOT / "tests/models"
        done(program, "compile", models / "digits.onnx", "--input-shapes", "image:[1,1,28,28]", "-O", "0", "-o", "d.tar")
        said = done(program, "classify", "d.tar", models / "pictures/7.png", "--labels", models / "digits.labels.txt", "--mean", "0", "--std", "1")
        self.assertRegex(said.splitlines()[1], r" 7$")

    def test_scripts_are_shell(self):
        for name in ("postinst", "prerm", "postrm"):
            subprocess.run(["sh", "-n", str(FOLDER / name)], check=True)


if __name__ == "__main__":
    unittest.main()
