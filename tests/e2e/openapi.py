"""Holds answers of the server against the document that it serves at /openapi.json."""

import functools
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile

import mill


@functools.lru_cache(maxsize=None)
def document():
    """From a server of its own: those of the tests may want keys, or be busy."""
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([str(mill.PROGRAM), "serve", "--listen", "127.0.0.1:0", "--data", folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
            try:
                line = next(l for l in process.stdout if l.startswith("listening on http://"))
                connection = http.client.HTTPConnection("127.0.0.1", int(line.rsplit(":", 1)[1]), timeout=60)
                connection.request("GET", "/openapi.json")
                answer = connection.getresponse()
                text = answer.read()
                connection.close()
            finally:
                process.send_signal(signal.SIGKILL)
    if answer.status != 200:
        raise AssertionError(f"/openapi.json: {answer.status} {text}")
    return json.loads(text)


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def has_type(value, kind):
    if kind in ("integer", "number"):
        kinds = int if kind == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind])


def mismatches(value, schema, at=""):
    """What `schema` does not allow in `value`, one line each."""
    if "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    shown = json.dumps(value)[:200]
    if "anyOf" in schema:
        reasons = [mismatches(value, choice, at) for choice in schema["anyOf"]]
        if all(reasons):
            return [f"{at}: {shown} fits no alternative: {'; '.join(lines[0] for lines in reasons)}"]
        return []
    if "const" in schema and value != schema["const"]:
        return [f"{at}: {shown} is not {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: {shown} is none of the known values"]
    if "type" in schema and not has_type(value, schema["type"]):
        return [f"{at}: {shown} is no {schema['type']}"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return [f"{at}: {shown} does not match {schema['pattern']}"]
    if schema.get("type") == "array":
        return [line for i, one in enumerate(value) for line in mismatches(one, schema["items"], f"{at}/{i}")]
    return object_mismatches(value, schema, at) if schema.get("type") == "object" else []


def object_mismatches(value, schema, at):
    found = [f"{at}: has no {name}" for name in schema["required"] if name not in value]
    for name, member in value.items():
        known = schema["patternProperties"]["^"] if "patternProperties" in schema else schema["properties"].get(name)
        if known is None:
            found.append(f"{at}: has a member {name} that the schema does not know")
        else:
            found += mismatches(member, known, f"{at}/{name}")
    return found


def operation_of(method, path):
    """The row of a request; None when there is none. A path without parameters is nearer than one with some."""
    asked = path.split("?")[0].split("/")
    fitting = [template for template in document()["paths"]
               if len(template.split("/")) == len(asked)
               and all(mine == its or (mine.startswith("{") and its) for mine, its in zip(template.split("/"), asked))]
    if not fitting:
        return None
    nearest = min(fitting, key=lambda template: template.count("{"))
    return document()["paths"][nearest].get("get" if method == "HEAD" else method.lower())


def problems_of(method, path, status, headers, body):
    """What the document does not allow in an answer, one line each."""
    operation = operation_of(method, path)
    if method == "OPTIONS" and status == 204:
        return []
    if operation is None and status < 400:
        return [f"an answer {status} of no endpoint"]
    answers = operation["responses"] if operation else {}
    answer = answers.get(str(status)) or (answers["2XX"] if status // 100 == 2 else
                                          document()["components"]["responses"]["Problem"])
    if "content" not in answer:
        return ["a body where none belongs"] if body else []
    kind = (headers.get("Content-Type") or "").split(";")[0]
    if kind not in answer["content"]:
        return [f"a body of type {kind!r}"]
    schema = answer["content"][kind].get("schema")
    if method == "HEAD" or status == 206 or headers.get("Content-Encoding") or schema is None:
        return []
    value = json.loads(body)
    if kind == "application/problem+json":
        note_code(value["code"])
    elif isinstance(value, dict) and isinstance(value.get("error"), dict):
        note_code(value["error"]["code"])
    return mismatches(value, schema)


def note_code(code):
    """Keeps the code for the run's list of the codes that were seen (tests/tools/run_tests.py)."""
    folder = os.environ.get("TEST_SEEN_CODES")
    if folder:
        with open(os.path.join(folder, str(os.getpid())), "a", encoding="utf-8") as file:
            file.write(code + "\n")


def check(method, path, status, headers, body):
    found = problems_of(method, path, status, headers, body)
    if found:
        raise AssertionError(f"{method} {path} answered {status}, which /openapi.json does not describe: " + "\n".join(found))
