"""The site of the documents: it builds without a warning, every link and anchor in it leads somewhere, it needs nothing from
elsewhere, it has every public name, setting, code, command and endpoint, and it uses the field's own words."""

import functools
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/docs"), str(ROOT / "api/docs")]

import draw  # noqa: E402
import mill  # noqa: E402
import pages  # noqa: E402
import words  # noqa: E402

DOCS = ROOT / "api/docs"
# What makes a browser fetch something, not only name it.
FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src"),
           ("object", "data"), ("use", "href"), ("form", "action")}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "manifest", "dns-prefetch", "modulepreload"}
# Elements whose text is no prose.
CODE = ("code", "pre", "script", "style")
PYTHON_NAMES = """
import inspect, json, tensormill as tm, tensormill.client
names = []
for name in tm.__all__:
    value = getattr(tm, name)
    names.append(name)
    if inspect.isclass(value) and value.__name__ == name:
        names += [f"{name}.{member}" for member in dir(value) if not member.startswith("_")
                  and (callable(getattr(value, member)) or isinstance(inspect.getattr_static(value, member), property))
                  and any(member in vars(base) for base in value.__mro__ if base.__module__.startswith("tensormill"))]
print(json.dumps(names))
"""


class Page(HTMLParser):
    """Links, anchors and what a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.fetched, self.words, self.prose = [], set(), [], [], []
        self.code, self.article = 0, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.code += tag in CODE
        self.article = self.article or tag == "article"
        self.anchors.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else None)))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        self.fetched += [given[name] for element, name in FETCHED if element == tag and given.get(name)]
        if tag == "link" and set((given.get("rel") or "").split()) & FETCHED_LINKS:
            self.fetched.append(given["href"])

    def handle_endtag(self, tag):
        self.code -= tag in CODE
        self.article = self.article and tag != "article"

    def handle_data(self, data):
        self.words.append(data)
        if self.article and not self.code:
            self.prose.append(data)

    def text(self):
        return " ".join("".join(self.words).split())


class Site(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name) / "site"
        done = subprocess.run([DOCS / "venv/bin/python", DOCS / "build.py", cls.folder, "--program", mill.PROGRAM],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=mill.PROGRAM_LIMIT_S)
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.built = {str(path.relative_to(cls.folder)): Page(path.read_text(encoding="utf-8")) for path in cls.folder.rglob("*.html")}

    def anchors(self, page):
        return self.built[page].anchors

    def test_every_page_is_there(self):
        sources = {name.with_suffix(".html") for name in (path.relative_to(pages.PAGES) for path in pages.pages())}
        self.assertLessEqual({str(name) for name in sources}, set(self.built))

    def test_links_and_anchors_lead_somewhere(self):
        wrong, seen = [], 0
        for name, page in self.built.items():
            for link in page.links:
                address, anchor = urldefrag(link)
                if urlsplit(address).scheme or name == "404.html":
                    continue
                seen += 1
                target = (self.folder / name).parent / unquote(address) if address else self.folder / name
                target = target / "index.html" if target.is_dir() else target
                if not target.is_file():
                    wrong.append(f"{name}: {link}")
                elif anchor and target.suffix == ".html":
                    known = self.anchors(str(target.resolve().relative_to(self.folder.resolve())))
                    if unquote(anchor) not in known:
                        wrong.append(f"{name}: no anchor {link}")
        self.assertGreater(seen, 1000)
        self.assertEqual(wrong, [])

    def test_nothing_comes_from_elsewhere(self):
        wrong = [f"{name}: {address}" for name, page in self.built.items() for address in page.fetched
                 if urlsplit(address).scheme not in ("", "data") or address.startswith("//")]
        for path in self.folder.rglob("*.css"):
            text = path.read_text(encoding="utf-8")
            wrong += [f"{path.name}: {found}" for found in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^)\"']+)", text)]
        self.assertEqual(wrong, [])

    def test_pictures_are_what_draw_gives(self):
        for name, text in draw.pictures().items():
            self.assertEqual((DOCS / f"pictures/{name}.svg").read_text(encoding="utf-8"), text, f"run api/docs/draw.py: {name}")

    def test_settings_and_codes_are_all_there(self):
        for page, table, macro in (("settings", "config/settings.def", r"TM_SETTING\(\w+, \w+"),
                                   ("errors", "runtime/base/error_codes.def", r"TM_ERROR_CODE\(\w+")):
            names = re.findall(rf'^{macro}, "([^"]+)"', (ROOT / table).read_text(encoding="utf-8"), re.MULTILINE)
            self.assertEqual(len(names), len(re.findall(r"^TM_\w+\(", (ROOT / table).read_text(encoding="utf-8"), re.MULTILINE)))
            text = self.built[f"reference/{page}.html"].text()
            self.assertEqual([name for name in names if not re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]\w)", text)], [])

    def test_commands_and_options_are_all_there(self):
        text = self.built["reference/cli.html"].text()
        names = re.findall(r'^TM_COMMAND\(\w+, "([a-z][a-z-]*)"', (ROOT / "server/cli/commands.def").read_text(), re.MULTILINE)
        wrong = []
        for name in names:
            said = mill.check_program(self, name, "--help")
            wrong += [f"{name} {option}" for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", said) if option not in text]
            wrong += [] if f"tensormill {name}" in text else [name]
        self.assertEqual(wrong, [])

    def test_endpoints_are_all_there(self):
        text = self.built["reference/http.html"].text()
        routes = re.findall(r'^TM_ROUTE\(\w+, "([A-Z]+)", "([^"]+)"', (ROOT / "api/endpoints/routes.def").read_text(), re.MULTILINE)
        # Pages for a browser are no part of the interface for programs.
        known = [f"{method} {path}" for method, path in routes if path.startswith(("/v1", "/v2"))]
        self.assertGreater(len(known), 60)
        self.assertEqual([one for one in known if one not in text], [])

    def test_python_names_are_all_there(self):
        done = subprocess.run([ROOT / "tests/python/venv/bin/python", "-c", PYTHON_NAMES], capture_output=True, text=True,
                              check=True, env={"PYTHONPATH": str(ROOT / "api/python"), "PYTHONDONTWRITEBYTECODE": "1"})
        names = json.loads(done.stdout)
        self.assertIn("Client.upload_model", names)
        self.assertEqual(sorted(set(names) - self.anchors("reference/python.html")), [])

    def test_c_and_cpp_names_are_all_there(self):
        page = self.built["reference/c.html"]
        exported = subprocess.run(["nm", "-D", "--defined-only", ROOT / "build/lib/libtensormill.so"], capture_output=True,
                                  text=True, check=True).stdout
        functions = re.findall(r" T (tm_\w+)", exported)
        self.assertGreater(len(functions), 30)
        self.assertEqual([name for name in functions if name not in page.anchors], [])
        header = (ROOT / "runtime/capi/tensormill.hpp").read_text(encoding="utf-8")
        public = re.sub(r"^private:.*?^\};", "};", header, flags=re.MULTILINE | re.DOTALL)
        members = re.findall(r"^  (?:[\w:<>*& ]+ )?(\w+)\([^;]*\) (?:const |noexcept )*\{", public, re.MULTILINE)
        self.assertGreater(len(members), 30)
        text = page.text()
        self.assertEqual([name for name in members if f"{name}(" not in text and name not in ("for", "if", "switch")], [])

    def test_words_are_the_fields_own(self):
        wrong = []
        readmes = [ROOT / name for name in subprocess.run(["git", "ls-files", "*README.md"], cwd=ROOT, capture_output=True, text=True,
                                                          check=True).stdout.split()]
        self.assertGreater(len(readmes), 80)
        for path in [*pages.pages(), *readmes, ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]:
            wrong += [f"{path.relative_to(ROOT)}: {found}" for found in words.words_of(path.read_text(encoding="utf-8"))]
        for name in self.built:
            if name.startswith("reference/"):
                wrong += [f"{name}: {found}" for found in words.words_of("".join(self.built[name].prose).replace("`", ""))]
        self.assertEqual(wrong, [])

    def test_the_words_are_found(self):
        self.assertEqual(len(words.words_of("No room is kept.")), 2)
        self.assertEqual(words.words_of("`room`, [a](room.md), mushroom\n```text\nroom\n```\n"), [])

    def test_in_a_browser(self):
        quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=self.folder)) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                done = subprocess.run(["node", ROOT / "tests/peer/docs/search.js", f"http://127.0.0.1:{server.server_port}/",
                                       f"file://{self.folder}/"], capture_output=True, text=True, check=False, timeout=mill.PROGRAM_LIMIT_S)
            finally:
                server.shutdown()
                thread.join()
        self.assertEqual((done.stdout, done.returncode), ("the site works\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
