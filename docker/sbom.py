"""sbom.py NAME VERSION <STATUS: the Debian packages that a dpkg status file names, as a CycloneDX 1.5 document. The same input
gives the same bytes."""

import hashlib
import json
import sys
import urllib.parse
import uuid


def stanzas(text):
    """The packages of a status file as dictionaries of their fields' first lines."""
    for block in text.split("\n\n"):
        fields = {}
        for line in block.splitlines():
            if line[:1] not in (" ", "\t") and ":" in line:
                name, value = line.split(":", 1)
                fields[name] = value.strip()
        if fields:
            yield fields


def component(fields, distribution="debian"):
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    purl = f"pkg:deb/{distribution}/{name}@{urllib.parse.quote(version, safe='.-~')}?arch={architecture}"
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if "Maintainer" in fields:
        found["supplier"] = {"name": fields["Maintainer"]}
    if "Source" in fields:
        found["properties"] = [{"name": "debian:source", "value": fields["Source"]}]
    return found


def document(name, version, status):
    installed = [fields for fields in stanzas(status) if fields.get("Status", "").endswith(" installed")]
    if not installed:
        raise SystemExit("error: the status file names no installed package")
    components = sorted((component(fields) for fields in installed), key=lambda one: one["bom-ref"])
    content = json.dumps([name, version, components], sort_keys=True).encode()
    serial = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)
    program = f"pkg:generic/{name}@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": program, "name": name, "version": version,
                                   "purl": program}},
        "components": components,
        "dependencies": [{"ref": program, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def main(arguments):
    if len(arguments) != 2:
        raise SystemExit("usage: sbom.py NAME VERSION <STATUS")
    print(json.dumps(document(*arguments, sys.stdin.read()), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
