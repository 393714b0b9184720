"""Tries what a sandbox should prevent, and says what it could do."""

import json
import os
import pwd
import socket
import tempfile


def could(act):
    try:
        act()
    except OSError as error:
        return f"no: {error.strerror}"
    return "yes"


def write_a_temporary_file():
    with tempfile.TemporaryFile() as file:
        file.write(b"x")


home = pwd.getpwuid(os.getuid()).pw_dir
here = os.path.dirname(os.path.abspath(__file__))
print(
    json.dumps(
        {
            "read its own file": could(lambda: open(__file__).close()),
            "list the home directory": could(lambda: os.listdir(home)),
            "write beside its own file": could(lambda: open(os.path.join(here, "new"), "x").close()),
            "write a temporary file": could(write_a_temporary_file),
            "open a network socket": could(lambda: socket.socket().close()),
            "signal its parent": could(lambda: os.kill(os.getppid(), 0)),
        }
    )
)
