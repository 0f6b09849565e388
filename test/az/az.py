"""Runs commands of az, and a program of the SDK that az brings along, against a local Azure.

Each file in chains is a chain of commands, which runs in a process of its own. A line is a command without "az"; a line
that begins with blanks is a JMESPath expression that has to be true of the output before it; a line that begins with "!"
is a command that has to fail, and the expression below it is about {"error": TEXT}. The output of a line that begins with
"NAME = " takes the place of "{NAME}" in later lines. Lines with "#" are comments.
"{templates}" is the folder of the templates, "{uri}" the server of that folder, and "{clusters}" the folder of the templates
of kaz cluster.

Usage: az.py ENDPOINTS [CHAIN...], where ENDPOINTS is a file with the line that "kaz local azure --proxy-address" prints.
"""

import contextlib
import http.server
import io
import json
import logging
import multiprocessing
import os
import pathlib
import re
import shlex
import sys
import tempfile
import threading
import time

here = pathlib.Path(__file__).resolve().parent


def environment(endpoints, config):
    os.environ.update({
        "HTTPS_PROXY": endpoints["proxy"],
        "REQUESTS_CA_BUNDLE": endpoints["caFile"],
        "SSL_CERT_FILE": endpoints["caFile"],  # of what az gets without the SDK, such as linked templates
        "AZURE_CONFIG_DIR": config,
        "AZURE_CORE_COLLECT_TELEMETRY": "0",
        "AZURE_CORE_NO_COLOR": "1",
        "AZURE_CORE_ONLY_SHOW_ERRORS": "1",
    })


def az(args):
    """Runs one command; returns its exit code, its output and its errors."""
    from azure.cli.core import get_default_cli

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
        try:
            logging.root.handlers.clear()
            logging.getLogger("cli").handlers.clear()  # else they write to the errors of an earlier command
            code = get_default_cli().invoke(args + ["--output", "json"], out_file=out)
        except SystemExit as exit:
            code = exit.code
    text = out.getvalue()
    try:
        return code or 0, json.loads(text) if text.strip() else None, err.getvalue()
    except json.JSONDecodeError:
        return code or 0, text, err.getvalue()


def match_versions():
    """Lets az use the newest version of each module of the SDK that is there, where its own is not.

    Debian packages az and the SDK apart, and the SDK lacks versions that az asks for, and in azure.mgmt.network the
    operations of each version: without this every command of "az vm" and "az network" ends with an import error.
    """
    import importlib
    import importlib.util

    from azure.cli.core.profiles._shared import AZURE_API_PROFILES, SDKProfile

    def matched(kind, version):
        folder = pathlib.Path(importlib.util.find_spec(kind.import_prefix).origin).parent
        there = sorted(p.name for p in folder.glob("v20*_*_*") if p.name.count("_") == 2)
        name = "v" + version.replace("-", "_")
        if there and name not in there:
            name = there[-1]
        if there and not (folder / name / "operations").exists():
            path = f"{kind.import_prefix}.{name}.operations"
            sys.modules[path] = importlib.import_module(kind.import_prefix + ".operations")
        return name[1:].replace("_", "-")

    latest = AZURE_API_PROFILES["latest"]
    for kind, version in latest.items():
        if not kind.import_prefix.startswith("azure.mgmt.") or importlib.util.find_spec(kind.import_prefix) is None:
            continue
        if isinstance(version, SDKProfile):
            version.profile.update({group: matched(kind, v) for group, v in version.profile.items()})
        elif isinstance(version, str):
            latest[kind] = matched(kind, version)


def steps(path):
    """The commands of a chain, each with the number of its line and the expressions below it."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] == " ":
            found[-1][2].append(line.strip())
        else:
            found.append((number, line, []))
    return found


def holds(check, value):
    import jmespath

    try:
        return jmespath.search(check, value) is True
    except jmespath.exceptions.JMESPathError:
        return False


def places():
    return {
        "templates": str(here / "templates"),
        "clusters": str(here.parents[1] / "internal/cluster/testdata"),
        "uri": os.environ["TEMPLATES_URI"],
    }


def run(name):
    """Runs a chain; returns its name, how long each command took, and the failures."""
    failures, times, values = [], [], places()
    path = here / "chains" / (name + ".az")
    for number, line, checks in steps(path):
        refused = line.startswith("!")
        for key, value in values.items():
            line = line.replace("{" + key + "}", value)
        keep = re.match(r"([a-z]+) = ", line)
        args = shlex.split(line[keep.end():] if keep else line.removeprefix("!"))
        began = time.monotonic()
        code, value, err = az(args)
        times.append((time.monotonic() - began, line))
        where = f"{path.name}:{number}: az {line}"
        if (code != 0) != refused:
            failures.append(f"{where}\n    ended with {code}: {err.strip()[-700:]}")
            continue
        if keep:
            values[keep[1]] = value
        if refused:
            value = {"error": err}
        failures += [f"{where}\n    {check} is not true of {json.dumps(value)[:1500]}" for check in checks if not holds(check, value)]
    return name, times, failures


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the folder of the templates."""

    def __init__(self, *args):
        super().__init__(*args, directory=here / "templates")

    def log_message(self, *args):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    os.environ["TEMPLATES_URI"] = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    endpoints = json.loads(pathlib.Path(sys.argv[1]).read_text())
    chains = sys.argv[2:] or sorted(p.stem for p in (here / "chains").glob("*.az"))
    with tempfile.TemporaryDirectory() as config:
        environment(endpoints, config)
        match_versions()
        serve()
        code, _, err = az(["login", "--service-principal", "-u", endpoints["clientId"], "-p", endpoints["clientSecret"],
                           "--tenant", endpoints["tenant"]])
        if code:
            sys.exit("az login: " + err)
        began = time.monotonic()
        # Commands wait for their operations most of the time, so there are more chains at a time than processors.
        with multiprocessing.get_context("fork").Pool(min(6, len(chains)), maxtasksperchild=1) as pool:
            results = pool.map(run, chains, chunksize=1)
    failures = [f for _, _, found in results for f in found]
    slow = sorted((t for _, times, _ in results for t in times), reverse=True)[:3]
    for failure in failures:
        print(failure)
    for name, times, found in results:
        print(f"{name}: {len(times)} commands in {sum(seconds for seconds, _ in times):.0f} s, {len(found)} failures")
    print(f"{sum(len(times) for _, times, _ in results)} commands in {time.monotonic() - began:.0f} s, {len(failures)} failures; "
          + "slowest: " + ", ".join(f"{seconds:.1f} s {line[:40]}" for seconds, line in slow))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
