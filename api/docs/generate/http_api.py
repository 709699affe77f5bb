"""reference/http.md of /openapi.json of a server."""

import json

from generate.tables import cell, code, prose, table

HEAD = """# Endpoints of HTTP

Made of `/openapi.json`, which a server has at that path for programs. [The rules](http-rules.md) say what all endpoints have in
common: errors, limits, keys, conditional requests, repeats. **Scope** is what a key needs where keys are needed.
"""
GROUPS = [("/v1/models", "Models"), ("/v1/jobs", "Jobs"), ("/v1/events", "Jobs"), ("/v1/packages", "Packages"),
          ("/v1/deployments", "Deployments"), ("/v1/tuning-records", "Tuning records"), ("/v1/uploads", "Uploads and blobs"),
          ("/v1/blobs", "Uploads and blobs"), ("/v1/keys", "Keys and audit"), ("/v1/audit", "Keys and audit"),
          ("/v1/workers", "Workers"), ("/v2", "KServe v2"), ("", "The server")]
METHODS = ["get", "post", "put", "patch", "delete"]


def group_of(path):
    return next(title for prefix, title in GROUPS if path.startswith(prefix))


def link(name):
    return f"[{name}](#schema-{name.lower()})"


def type_of(schema):
    """A schema in a few words."""
    if "$ref" in schema:
        return link(schema["$ref"].rsplit("/", 1)[1])
    for key, word in (("anyOf", " or "), ("oneOf", " or "), ("allOf", " and ")):
        if key in schema:
            return word.join(type_of(one) for one in schema[key])
    if "enum" in schema:
        return ", ".join(code(json.dumps(value)) for value in schema["enum"])
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(type_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        return f"array of {type_of(schema.get('items', {}))}"
    if kind == "object" and "patternProperties" in schema:
        return "object, values: " + " or ".join(type_of(one) for one in schema["patternProperties"].values())
    if kind == "object" and schema.get("properties"):
        inner = ", ".join(f"{code(name)}: {type_of(one)}" for name, one in schema["properties"].items())
        return f"object of {inner}"
    return kind + (f" matching {code(schema['pattern'])}" if "pattern" in schema else "")


def contents(answer):
    kinds = [type_of(of["schema"]) if kind == "application/json" and "$ref" in of.get("schema", {}) else code(kind)
             for kind, of in answer.get("content", {}).items()]
    return " or ".join(kinds) or "nothing"


def operation(path, method, spec):
    lines = [f"### `{method.upper()} {path}` {{ #{spec['operationId']} }}\n", f"{prose(spec['summary'])}\n"]
    lines += [f"Scope: {spec.get('x-scope', 'none')}\n"]
    if spec.get("parameters"):
        lines += table(["parameter", "in", "type", "meaning"], (
            [code(one["name"]) + (" (required)" if one.get("required") else ""), one["in"], type_of(one.get("schema", {})),
             prose(one.get("description", ""))] for one in spec["parameters"]))
    if "requestBody" in spec:
        lines += [f"Body: {contents(spec['requestBody'])}\n"]
    answers = [f"{status}: {contents(answer)}" for status, answer in spec["responses"].items() if status != "default"]
    return lines + [f"Answers: {'; '.join(answers)}; else a {link('Problem')}\n"]


def schema_section(name, schema):
    lines = [f"### {name} {{ #schema-{name.lower()} }}\n"]
    if "description" in schema:
        lines += [f"{cell(schema['description'])}\n"]
    members = schema.get("properties")
    if not members:
        return lines + [f"{type_of(schema)}\n"]
    required = set(schema.get("required", ()))
    return lines + list(table(["member", "type", ""], (
        [code(member), type_of(of), " ".join(filter(None, ["required" if member in required else "", prose(of.get("description", ""))]))]
        for member, of in members.items())))


def page(openapi):
    lines = [HEAD]
    titles = list(dict.fromkeys(title for _, title in GROUPS))
    for title in titles:
        found = [(path, method, openapi["paths"][path][method]) for path in sorted(openapi["paths"])
                 for method in METHODS if method in openapi["paths"][path] and group_of(path) == title]
        if found:
            lines += [f"## {title}\n"]
            for path, method, spec in found:
                lines += operation(path, method, spec)
    lines += ["## Schemas\n", "JSON bodies have these members and no others.\n"]
    for name in sorted(openapi["components"]["schemas"]):
        lines += schema_section(name, openapi["components"]["schemas"][name])
    return "\n".join(lines)
