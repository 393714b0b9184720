"""Lets a worker run only the code that was trusted.

The guard checks modules when they are loaded, not when they are found: no matter which finder,
`.pth` file or `spec_from_file_location` leads to a file, its bytes are read once, compared and
compiled. Bytecode is not used, because nothing shows which source it was made from. The file of an
extension module is compared just before it is loaded.

A file is trusted if it is listed with its hash, or if it belongs to a package whose RECORD is listed
and names its hash. The standard library, the packages of the user's own Python, and files that only
root can write are not checked. Everything else is refused.

The interpreter is started with -E and -S, so that nothing but the standard library was imported
before; what `site` does at a normal start is done here, with the guard in place.
"""

import _imp
import importlib._bootstrap_external as external
import json
import os
import site
import sys

try:
    from _sha2 import sha256
except ImportError:
    try:
        from _sha256 import sha256
    except ImportError:
        from hashlib import sha256

LOOK = "review what changed, and allow it with 'toolhost trust'"
PACKAGE_DIRECTORIES = ("site-packages", "dist-packages")


def below(path, directory):
    return path == directory or path.startswith(directory.rstrip("/") + "/")


class Guard:
    def __init__(self, told, root, refuse):
        self.files = told["files"]
        self.refuse = refuse
        self.root = os.path.realpath(root)
        self.places = [self.root] + told["recorded_packages"]
        self.places += [os.path.realpath(place) for place in told["path"]]
        # With -E and -S this is only the standard library.
        self.standard_path = [os.path.abspath(place) for place in sys.path]
        own = site.getsitepackages([sys.base_prefix, sys.base_exec_prefix])
        if not sys.flags.no_user_site:
            own.append(site.getusersitepackages())
        # A Python that is part of the project is not the user's own, no matter how it was started.
        self.packages = [place for place in own if not self.is_of_project(place)]
        self.own_path = [os.path.realpath(place) for place in told["own_path"]]
        self.recorded_packages = told["recorded_packages"]
        self.records = None

    def is_of_project(self, path):
        real = os.path.realpath(path)
        return any(below(real, place) for place in self.places)

    def is_own(self, path, real):
        """Whether a file belongs to the user's own Python. Links in there are the user's, too."""
        for place in self.standard_path:
            if below(path, place):
                parts = path[len(place):].split("/")
                if len(parts) < 2 or parts[1] not in PACKAGE_DIRECTORIES:
                    return True
        if any(below(path, place) for place in self.packages):
            return True
        return not below(real, self.root) and any(below(real, place) for place in self.own_path)

    def expected(self, path):
        """The hash a file must have, or None for one that is not checked. Refuses any other."""
        path = os.path.abspath(path)
        real = os.path.realpath(path)
        if self.is_own(path, real):
            return None
        wanted = self.files.get(real)
        if wanted is not None:
            return wanted
        # As RECORD names it: in its own directory, even when the file itself is a link.
        beside = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        for known in (real, beside):
            record, wanted = self.recorded().get(known, (None, None))
            if record is not None:
                if wanted is None:
                    self.refuse_file(record)
                return hex_of(wanted)
        if not only_root_writes(real):
            self.refuse_file(real)
        return None

    def refuse_file(self, path):
        if path in self.files:
            self.refuse("'%s' changed since it was trusted" % path, LOOK)
        hint = LOOK
        if not self.is_of_project(path):
            hint = ("modules of a trusted project come from its root, from PYTHONPATH in 'env' and "
                    "from its virtual environment; " + LOOK)
        self.refuse("'%s' is not part of what was trusted" % path, hint)

    def read(self, path, wanted):
        """The bytes of a file, which must have the expected hash."""
        with open(path, "rb") as file:
            data = file.read()
        if sha256(data).hexdigest() != wanted:
            self.refuse("'%s' changed since it was trusted" % os.path.realpath(path), LOOK)
        return data

    def check(self, path):
        wanted = self.expected(path)
        if wanted is not None:
            self.read(path, wanted)

    def recorded(self):
        """What the RECORD files of the environment say: path to RECORD and hash. The hash is None
        where RECORD itself is not the one that was trusted."""
        if self.records is None:
            self.records = {}
            for place in self.recorded_packages:
                for name in sorted(os.listdir(place)):
                    if name.endswith(".dist-info"):
                        self.read_record(place, os.path.join(place, name, "RECORD"))
        return self.records

    def read_record(self, place, path):
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return
        real = os.path.realpath(path)
        trusted = self.files.get(real) == sha256(data).hexdigest()
        for line in data.decode("utf-8", "replace").splitlines():
            name, _, rest = line.rpartition(",")[0].rpartition(",")
            if not rest.startswith("sha256="):
                continue
            if name.startswith('"'):
                name = name[1:-1].replace('""', '"')
            file = os.path.normpath(os.path.join(place, name))
            # An added RECORD must not vouch for a file of a trusted one.
            if trusted:
                self.records[file] = (real, rest[7:])
            else:
                self.records.setdefault(file, (real, None))


def hex_of(digest):
    """The hash of a RECORD, which is in base64 without padding."""
    import binascii
    text = digest.replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4)).hex()
    except ValueError:
        return ""


def only_root_writes(path):
    """Whether only root can change a file or replace it. Within a user
    namespace in which root has no number, no file counts as such."""
    root = number_of_root()
    if root is None or os.geteuid() == root:
        return False
    while True:
        try:
            status = os.lstat(path)
        except OSError:
            return False
        if status.st_uid != root or status.st_mode & 0o022:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def number_of_root():
    try:
        with open("/proc/self/uid_map") as lines:
            for line in lines:
                inside, outside, count = map(int, line.split())
                if outside == 0 and count > 0:
                    return inside
        return None
    except OSError:
        # A system without user namespaces.
        return None if sys.platform == "linux" else 0


def install(told, root, refuse):
    """Installs the guard, then does what `site` does at a normal start."""
    guard = Guard(told, root, refuse)
    guard_loaders(guard)
    guard_archives(guard)
    guard_path_files(guard)
    site.main()
    sys.path[0:0] = [root] + told["path"] + told["own_path"]
    sys.path_importer_cache.clear()


def guard_loaders(guard):
    source = external.SourceFileLoader.get_code
    bytecode = external.SourcelessFileLoader.get_code
    extension = _imp.create_dynamic

    def get_code(loader, fullname):
        path = loader.get_filename(fullname)
        wanted = guard.expected(path)
        if wanted is None:
            return source(loader, fullname)
        return loader.source_to_code(guard.read(path, wanted), path)

    def get_bytecode(loader, fullname):
        guard.check(loader.get_filename(fullname))
        return bytecode(loader, fullname)

    def create_dynamic(spec, *rest):
        guard.check(spec.origin)
        return extension(spec, *rest)

    external.SourceFileLoader.get_code = get_code
    external.SourcelessFileLoader.get_code = get_bytecode
    _imp.create_dynamic = create_dynamic


def guard_archives(guard):
    """Modules in archives have no file to compare."""
    def hook(path):
        place = os.path.abspath(path)
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        if not os.path.isdir(place):
            real = os.path.realpath(place)
            if not guard.is_own(place, real) and not only_root_writes(real):
                guard.refuse("'%s' is an archive, and nothing is imported from archives of a "
                             "project" % place, "unpack it; then 'toolhost trust'")
        raise ImportError("not an archive of a project")

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def guard_path_files(guard):
    """`.pth` files may contain code, which `site` runs."""
    original = site.addpackage

    def addpackage(sitedir, name, known_paths):
        guard.check(os.path.join(sitedir, name))
        return original(sitedir, name, known_paths)

    site.addpackage = addpackage
