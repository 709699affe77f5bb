"""Rules of the house that no compiler checks, on the text without its comments and strings."""

import re
import unittest

from sources import ROOT, ROOMS, tracked

MAX_LINES = 500
MAX_FUNCTION_LINES = 60
NOT_YET = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "HA" + "CK")) + r")\b")
NEW = re.compile(r"\bnew\s+(?:\(|[A-Za-z_:])")
# LLVM's legacy pass manager owns what `passes.add` is given.
ADDED_PASS = re.compile(r"\bpasses\.add\(new\b")
# A constructor that is private to its factory cannot be reached by make_unique: the pointer owns it from the start.
OWNED_NEW = re.compile(r"\b(?:unique_ptr|shared_ptr)<[^;=]*>\s*(?:\w+\s*)?[({]\s*new\b")
CATCH_ALL = re.compile(r"\bcatch\s*\(\s*\.\.\.\s*\)\s*\{")
SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(")
# Strangers' JSON has bounds, in size, values and depth: parse_json. What tests read is their own.
UNBOUNDED_JSON = re.compile(r"\b[Jj]son::(?:parse|accept|sax_parse)\s*\(|\bparse_own_json\s*\(")
READS_OWN_JSON = {"runtime/base/own_json.h",
                  "server/cli/report_command.cc",  # the report whose page it writes
                  # Answers of this server to a request of the same process.
                  "server/grpc/infer_messages.cc", "server/grpc/methods.cc"}
# How many CPUs there are, past a control group's quota; the mask of those that a thread may be on is another question.
CPU_COUNT = re.compile(r"\b(?:hardware_concurrency|sched_getaffinity|pthread_getaffinity_np|_SC_NPROCESSORS_(?:ONLN|CONF)"
                       r"|get_nprocs(?:_conf)?|CPU_COUNT(?:_S)?|omp_get_(?:num_procs|max_threads))\b")
ASKS_FOR_CPUS = {"runtime/base/cpu_count.cc": None,
                 "server/batching/home_core.cc": "sched_getaffinity"}  # whether a thread may go to one core
# What several files once wrote for themselves, each a little differently: by what shows it in the text, where it stands.
WRITTEN_ONCE = {
    "digits of hexadecimal text": (re.compile(r'"0123456789[aA]|\bisxdigit\b|\bstd::hex\b|%02[xX]|-\s*\'[aA]\'\s*\+\s*10\b'),
                                   {"runtime/base/hex.h", "runtime/base/percent.h"}),  # those of percent encoding are upper-case
    "what a name is": (re.compile(r"\bbool is_name\([^)]*\)(?! const)"), {"runtime/base/names.h", "runtime/base/names.cc"}),
    "whether bytes are UTF-8": (re.compile(r"\bbool is_utf8\("), {"runtime/base/text.h", "runtime/base/text.cc"}),
    "an error that was JSON": (re.compile(r"\berror_code_from_name\("),
                               {"runtime/base/error.h", "runtime/base/error.cc", "runtime/base/error_json.cc", "api/http/problem.cc"}),
    "how pictures are prepared, out of JSON": (re.compile(r"\bPreprocess\b[^;{}()]*\([^;{}()]*\bJson\b"),
                                               {"api/schema/deployment_spec.cc"}),
    "a body that is read into memory": (
        re.compile(r"\b(?:std::string|TensorBody|std::vector<[^;>]*>)\s+\w+\([^;{}()]*\bBodySource&"),
        {"api/http/tensor_body.h", "api/http/tensor_body.cc",
         "server/services/workers/worker_finish.cc"}),  # a line of bounded length, and parts by read_body_part
    "JSON for programs on standard output": (re.compile(r"\bstd::cout\s*<<[^;]*\bdump\((?![^;]*Colour::)"), {"server/cli/terminal.cc"}),
}
# Words that this code once had for itself, in names of headers: run-time values are dynamic, what is said before is static.
PRIVATE_NAME = re.compile(r"\b\w+_(?:as|of)_runs?\b|\b(?:\w+_)?told(?:_\w*)?\b|\b(?:\w+_)?truths?_of\b")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
# What holds functions, at the end of what stands before its brace.
SCOPE = re.compile(r"""\b(?:namespace[\w\s:]*|extern\s*""|(?:class|struct|union|enum)\b[^()=]*)$""")
TOKENS = re.compile(r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R"(?P<mark>[^(\s]{0,16})\(.*?\)(?P=mark)")"""
                    r"""|(?P<text>"(?:\\.|[^"\\\n])*")|(?P<letter>'(?:\\.|[^'\\\n])+')""", re.DOTALL)


def without_comments(text):
    """The code alone; line numbers stay."""

    def blank(match):
        word = match.group(0)
        # A digit separator is no character literal.
        if match.group("letter") and match.start() and text[match.start() - 1].isalnum():
            return word
        return ("" if match.group("comment") else '""') + "\n" * word.count("\n")

    return TOKENS.sub(blank, text)


def block_at(code, brace):
    """The text from the brace at `brace` to the one that closes it."""
    depth = 0
    for end in range(brace, len(code)):
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        if depth == 0:
            return code[brace:end + 1]
    return code[brace:]


def kind_of_block(head):
    """Of a block outside of functions, by what stands before its brace."""
    if head[-1:].strip() or head.rstrip().endswith("="):  # a{1}, a = {1}
        return "value"
    return "scope" if SCOPE.search(head.rstrip()) else "function"


def functions(code):
    """(first line, number of lines) of each function that is defined there, from its type to its closing brace."""
    code = DIRECTIVE.sub(lambda match: "\n" * match.group(0).count("\n"), code)
    start, blocks = 0, []
    for found in re.finditer(r"[{};]|\b(?:public|private|protected)\s*:(?!:)", code):
        is_outside = all(kind == "scope" for kind, _ in blocks)
        is_end = is_outside and found.group(0) not in "{}"
        if found.group(0) == "{":
            head = code[start:found.start()]
            kind = kind_of_block(head) if is_outside else "inner"
            blocks.append((kind, start + len(head) - len(head.lstrip())))
            is_end = kind == "scope"
        elif found.group(0) == "}":
            kind, first = blocks.pop()
            is_end = kind in ("scope", "function")
            if kind == "function":
                yield code.count("\n", 0, first) + 1, code.count("\n", first, found.start()) + 1
        if is_end:
            start = found.end()


def at(path, code, position):
    return f"{path}:{code.count(chr(10), 0, position) + 1}"


class Style(unittest.TestCase):
    maxDiff = None

    def sources(self):
        for path in tracked("*.cc", "*.h"):
            yield path, without_comments((ROOT / path).read_text())

    def test_the_checks_see_what_they_look_for(self):
        self.assertEqual(without_comments('a // new B\n"new C" /* x\n */ R"(new D)" 1\'000\'0'),
                         'a \n"" \n "" 1\'000\'0')
        self.assertTrue(NEW.search("p = new Thing(1);"))
        self.assertFalse(NEW.search("int new_value = renew (x);"))
        self.assertTrue(OWNED_NEW.search("return std::shared_ptr<const A<B>>(new A<B>(1));"))
        self.assertTrue(OWNED_NEW.search("std::shared_ptr<Package> package(new Package);"))
        self.assertEqual(block_at("x { a { b } c } d", 2), "{ a { b } c }")
        self.assertEqual(list(functions("namespace a {\nint x = {1};\nclass B : public C {\npublic:\n  B(A a = {}) : a_{a}\n"
                                        "  {}\n};\nextern \"\" {\nauto f()\n    -> int {\n  if (x) {\n  }\n}\n}\n}\n")),
                         [(5, 2), (9, 5)])
        self.assertEqual(list(functions("#define M(x) { \\\n  {\nconstexpr Row kRows[] = {\n  {1},\n};\nint g() {}")), [(6, 1)])
        self.assertTrue(SLEEP.search("std::this_thread::sleep_for(1s)"))
        self.assertTrue(UNBOUNDED_JSON.search("const Json said = Json::parse(text, nullptr, false);"))
        self.assertTrue(UNBOUNDED_JSON.search("return nlohmann::json::parse(text);"))
        self.assertTrue(UNBOUNDED_JSON.search("return parse_own_json(text);"))
        self.assertFalse(UNBOUNDED_JSON.search("return parse_json(text);"))
        for what, written in (("digits of hexadecimal text", "return c - 'a' + 10;"),
                              ("what a name is", "bool is_name(const std::string& text) {"),
                              ("whether bytes are UTF-8", "bool is_utf8(std::string_view text) {"),
                              ("an error that was JSON", 'throw Error(error_code_from_name(json.at("code")))'),
                              ("how pictures are prepared, out of JSON", "services::Preprocess preprocess_from_json(const Json& json) {"),
                              ("a body that is read into memory", "std::string text_of(http::BodySource& body) {"),
                              ("JSON for programs on standard output", 'std::cout << Json{{"a", 1}}.dump() << std::endl;')):
            self.assertTrue(WRITTEN_ONCE[what][0].search(written), what)
        for asked in ("std::thread::hardware_concurrency()", "sysconf(_SC_NPROCESSORS_ONLN)", "get_nprocs()", "CPU_COUNT(&set)"):
            self.assertTrue(CPU_COUNT.search(asked), asked)

    def test_nothing_is_left_for_later(self):
        wrong = []
        for path in tracked("*.cc", "*.h", "*.def", "*.py", "*.js", "*.cmake", "CMakeLists.txt", "dev"):
            text = (ROOT / path).read_text()
            wrong += [at(path, text, found.start()) for found in NOT_YET.finditer(text)]
        self.assertEqual(wrong, [])

    def test_no_error_is_swallowed(self):
        wrong = []
        for path, code in self.sources():
            for found in CATCH_ALL.finditer(code):
                block = block_at(code, found.end() - 1)
                if not re.search(r"\bthrow\b|current_exception|\bFAIL\(\)|\bterminate\(\)|\babort\(\)", block):
                    wrong.append(at(path, code, found.start()))
        self.assertEqual(wrong, [])

    def test_every_allocation_has_an_owner(self):
        wrong = []
        for path, code in self.sources():
            owned = {found.end() for pattern in (OWNED_NEW, ADDED_PASS) for found in pattern.finditer(code)}
            wrong += [at(path, code, found.start()) for found in NEW.finditer(code)
                      if found.start() + len("new") not in owned]
        self.assertEqual(wrong, [])

    def test_tests_do_not_sleep(self):
        wrong = [at(path, code, found.start()) for path, code in self.sources() if path.parts[0] == "tests"
                 for found in SLEEP.finditer(code)]
        self.assertEqual(wrong, [])

    def test_json_is_read_within_bounds(self):
        found = {}
        for path, code in self.sources():
            if path.parts[0] != "tests":
                found[str(path)] = [at(path, code, one.start()) for one in UNBOUNDED_JSON.finditer(code)]
        wrong = sum((places for path, places in found.items() if path not in READS_OWN_JSON), [])
        self.assertEqual(wrong, [], "use parse_json of runtime/base/json.h")
        self.assertEqual([path for path in READS_OWN_JSON if not found.get(path)], [], "exceptions that are none any more")

    def test_threads_are_counted_in_one_place(self):
        """usable_cores() knows the quota of a container; whoever asks the system itself has threads that it stops."""
        wrong, right = [], set()
        for path, code in self.sources():
            for found in CPU_COUNT.finditer(code):
                if ASKS_FOR_CPUS.get(str(path), "") in (None, found.group(0)):
                    right.add(str(path))
                else:
                    wrong.append(at(path, code, found.start()))
        self.assertEqual(wrong, [], "use usable_cores() of runtime/base/cpu_count.h")
        self.assertEqual(right, set(ASKS_FOR_CPUS), "a file that asks no more is no exception any more")

    def test_what_has_a_place_is_not_written_again(self):
        texts = {str(path): (ROOT / path).read_text() for path in tracked("*.cc", "*.h") if path.parts[0] in ROOMS}
        for what, (shows, places) in WRITTEN_ONCE.items():
            with self.subTest(what):
                self.assertEqual({path for path, text in texts.items() if shows.search(text)}, places)

    def test_files_fit_a_reader(self):
        paths = tracked("*.cc", "*.h", "*.py", "*.js", "dev")
        counts = {path: len((ROOT / path).read_text().splitlines()) for path in paths}
        self.assertEqual([f"{path}: {count} lines" for path, count in counts.items() if count > MAX_LINES], [])

    def test_functions_fit_a_reader(self):
        """Each does one thing; a table is no function, and tests tell a story from its beginning to its end."""
        found = [(path, line, count) for path, code in self.sources() if path.parts[0] in ROOMS
                 for line, count in functions(code)]
        self.assertGreater(len(found), 10_000)
        self.assertEqual([f"{path}:{line}: {count} lines" for path, line, count in found if count > MAX_FUNCTION_LINES], [])

    def test_headers_have_the_words_of_the_field(self):
        wrong = [at(path, code, found.start()) + " " + found.group(0) for path, code in self.sources()
                 if path.suffix == ".h" and path.parts[0] in ROOMS
                 for found in PRIVATE_NAME.finditer(code)]
        self.assertEqual(wrong, [])

    def test_headers_are_guarded(self):
        wrong = [str(path) for path in tracked("*.h") if "#pragma once" not in (ROOT / path).read_text()
                 and not re.search(r"^#ifndef \w+\n#define ", (ROOT / path).read_text(), re.MULTILINE)]
        self.assertEqual(wrong, [])

    def test_nothing_else_stands_at_the_top(self):
        """A program that a test ran in the wrong folder leaves files there."""
        folders = {"server", "compiler", "runtime", "api", "storage", "tests", "bench", "docker", "config", ".ci"}
        files = {"CMakeLists.txt", "CMakePresets.json", "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "dev"}
        found = {path.parts[0] if len(path.parts) > 1 else str(path) for path in tracked("*")}
        self.assertEqual([name for name in sorted(found - folders - files) if not (ROOT / name).is_file() or name[0] != "."], [])

    def test_every_room_says_what_it_is(self):
        """A folder that holds sources has a README, or one around it names it; a table's rows belong to their room."""
        folders = {path.parent for path in tracked("*.cc", "*.h") if path.parts[0] in ROOMS}
        rows = {"templates", "converters"}

        def is_named(folder):
            around = [ROOT / parent / "README.md" for parent in folder.parents]
            nearest = next((readme for readme in around if readme.is_file()), None)
            return nearest is not None and f"`{folder.name}/`" in nearest.read_text()

        wrong = [str(folder) for folder in sorted(folders)
                 if not (ROOT / folder / "README.md").is_file() and folder.name not in rows and not is_named(folder)]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
