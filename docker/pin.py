"""pin.py: writes the digests that the tags of images have now into .env beside the compose files, which compose reads by
itself: from then on those bytes run and are built from, and no others. Run it again for newer ones.

A tag is resolved at its registry (docker buildx imagetools inspect) or, where that does not answer, as it was pulled last
(docker image inspect). Nothing is written unless every image has a digest; lines of .env with other names stay."""

import json
import os
import re
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
IMAGE = re.compile(r"\$\{([A-Z0-9]+_IMAGE):-([^}@\s]+)\}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def images():
    """What the compose files take from a registry: names by their variables."""
    found = {}
    for path in sorted(FOLDER.glob("compose*.yaml")):
        for variable, name in IMAGE.findall(path.read_text(encoding="utf-8")):
            if found.setdefault(variable, name) != name:
                raise SystemExit(f"error: {path.name} has {name} as {variable}, another file has {found[variable]}")
    return found


def asked(*words):
    """What docker prints as JSON, or nothing and what it says instead."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    try:
        return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr.strip())
    except ValueError:
        return None, f"docker {words[0]} printed no JSON"


def digest_of(name):
    manifest, why = asked("buildx", "imagetools", "inspect", "--format", "{{json .Manifest}}", name)
    # Of an image for several machines this is the digest of the list of all.
    found = manifest.get("digest", "") if isinstance(manifest, dict) else ""
    if not DIGEST.fullmatch(found):
        pulled, why_not_here = asked("image", "inspect", "--format", "{{json .RepoDigests}}", name)
        repository = name.rsplit(":", 1)[0]
        digests = [one.split("@")[1] for one in pulled or [] if one.split("@")[0] == repository]
        found = digests[0] if digests else ""
        why = why or why_not_here
    if not DIGEST.fullmatch(found):
        raise SystemExit(f"error: {name} has no digest at its registry, and none that was pulled: {why}")
    return found


def main():
    lines = {variable: f"{variable}={name}@{digest_of(name)}" for variable, name in images().items()}
    file, part = FOLDER / ".env", FOLDER / ".env.part"
    others = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [line for line in others if line.split("=", 1)[0].strip() not in lines]
    part.write_text("\n".join([*kept, *lines.values(), ""]), encoding="utf-8")
    os.replace(part, file)
    print("\n".join(lines.values()))


if __name__ == "__main__":
    main()
