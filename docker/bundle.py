"""bundle.py IMAGE.json ROOT STORE KEYS: the runtime configuration (OCI runtime specification 1.0) of the image that
`buildah inspect` printed, as `docker run --read-only --cap-drop ALL --security-opt no-new-privileges` starts it."""

import json
import sys

RUNTIME = [("/proc", "proc", "proc", []),
           ("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
           ("/dev/shm", "tmpfs", "shm", ["nosuid", "noexec", "nodev", "mode=1777"]),
           ("/tmp", "tmpfs", "tmpfs", ["nosuid", "nodev", "mode=1777"])]


def configuration(image, root, store, keys):
    config = image["Docker"]["config"]
    user, group = (int(part) for part in config["User"].split(":"))
    mounts = [{"destination": to, "type": kind, "source": source, "options": options}
              for to, kind, source, options in RUNTIME]
    mounts.append({"destination": next(iter(config["Volumes"])), "type": "bind", "source": store, "options": ["bind", "rw"]})
    environment = dict(one.split("=", 1) for one in config["Env"])
    mounts.append({"destination": environment["TENSORMILL_KEYS_FILE"], "type": "bind", "source": keys,
                   "options": ["bind", "ro"]})
    return {
        "ociVersion": "1.0.0",
        "process": {
            "user": {"uid": user, "gid": group},
            "args": config["Entrypoint"] + config["Cmd"],
            "env": config["Env"],
            "cwd": config.get("WorkingDir") or "/",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": root, "readonly": True},
        "hostname": "tensormill",
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
                  "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
                  "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]},
    }


def main(arguments):
    with open(arguments[0], encoding="utf-8") as file:
        image = json.load(file)
    print(json.dumps(configuration(image, *arguments[1:]), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
