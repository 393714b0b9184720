"""What there is to package: this version's archives in a directory, as .ci/dist writes them."""

import dataclasses
import hashlib
import pathlib
import sys
import tarfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]
NAME, VERSION = CRATE["name"], CRATE["version"]


@dataclasses.dataclass
class Archive:
    """One archive, for one target."""

    path: pathlib.Path
    target: str
    sha256: str

    @property
    def system(self) -> str:
        """`linux`, `darwin` or `windows`."""
        return next(name for name in ("linux", "darwin", "windows") if name in self.target)

    @property
    def machine(self) -> str:
        """`x86_64` or `aarch64`."""
        return self.target.split("-")[0]

    def url(self, repository: str) -> str:
        """Where it can be downloaded: the pattern in Cargo.toml, which is cargo-binstall's."""
        url = CRATE["metadata"]["binstall"]["pkg-url"]
        values = {"repo": repository, "name": NAME, "version": VERSION, "target": self.target}
        for key, value in values.items():
            url = url.replace("{ %s }" % key, value)
        return url

    def files(self) -> list[tuple[str, bytes, int]]:
        """Its files, without the directory around them: path, content and mode."""
        with tarfile.open(self.path) as archive:
            members = [member for member in archive if member.isfile()]
            return [
                (member.name.split("/", 1)[1], archive.extractfile(member).read(), member.mode)
                for member in members
            ]


def archives(directory: str) -> list[Archive]:
    """The archives, sorted by target. Each must have the digest that stands in the file beside it."""
    found = []
    prefix = f"{NAME}-{VERSION}-"
    for path in sorted(pathlib.Path(directory).glob(f"{prefix}*.tar.gz")):
        stem = path.name.removesuffix(".tar.gz")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines = path.with_name(f"{stem}.sha256").read_text(encoding="utf-8").splitlines()
        if [digest, path.name] not in [line.split() for line in lines]:
            sys.exit(f"{path.name} is not what {stem}.sha256 says")
        target = stem.removeprefix(prefix)
        if target.endswith("-linux-gnu"):
            sys.exit(f"{path.name} needs this system's C library; package the static program instead")
        found.append(Archive(path, target, digest))
    if not found:
        sys.exit(f"no {prefix}*.tar.gz in {directory}; .ci/dist makes one")
    return found

