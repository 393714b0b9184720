#!/bin/sh
# Installs toolhost for this user, from an archive that has the checksum in the file beside it.
#
#   sh install.sh [--from FILE|DIRECTORY|URL] [--to DIRECTORY]
#
#   --from  the archive, or where it lies; by default where this release can be downloaded
#   --to    the directory for the program; by default ~/.local/bin
set -eu
umask 022

# packaging/render writes the release here.
version=''
address=''

fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# fetch FROM TO: from a file or an address that nobody on the way can change.
fetch() {
  case $1 in
    https://* | file://*)
      if has curl; then
        curl --proto '=https,file' --tlsv1.2 -fsSL -o "$2" -- "$1" || fail "cannot download $1"
      elif has wget; then
        wget -q -O "$2" -- "$1" || fail "cannot download $1"
      else
        fail "a download needs curl or wget"
      fi
      ;;
    *://*) fail "$1 is neither an https:// nor a file:// address" ;;
    *) cp -- "$1" "$2" || fail "cannot read $1" ;;
  esac
}

digest() {
  if has sha256sum; then
    sha256sum <"$1"
  elif has shasum; then
    shasum -a 256 <"$1"
  elif has openssl; then
    openssl dgst -sha256 -r <"$1"
  else
    fail "the checksum needs sha256sum, shasum or openssl"
  fi | cut -d ' ' -f 1
}

# The target whose program runs here.
target() {
  case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) machine='' ;;
  esac
  case ${machine:+$(uname -s)} in
    Linux) echo "$machine-unknown-linux-musl" ;;
    Darwin) echo "$machine-apple-darwin" ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m); build it from the sources with cargo" ;;
  esac
}

main() {
  from=$address to=${HOME:+$HOME/.local/bin}
  while [ $# -gt 0 ]; do
    case $1 in
      --from | --to) [ $# -gt 1 ] || fail "$1 needs a value" ;;
      -h | --help)
        echo "usage: sh install.sh [--from FILE|DIRECTORY|URL] [--to DIRECTORY]"
        return
        ;;
      *) fail "unknown argument $1; see --help" ;;
    esac
    case $1 in
      --from) from=${2%/} ;;
      --to) to=$2 ;;
    esac
    shift 2
  done
  [ -n "$from" ] || fail "this copy belongs to no release: say with --from where the archive is"
  [ -n "$to" ] || fail "HOME is not set: say with --to where the program goes"
  target=$(target)

  # Which archive.
  if [ -d "$from" ]; then
    any=${version:-*}
    # shellcheck disable=SC2086 # the star stands for any version
    set -- "$from"/toolhost-$any-"$target".tar.gz
    [ $# -eq 1 ] || fail "more than one archive fits; name one: --from $1"
    [ -f "$1" ] || fail "no archive for $target in $from"
    from=$1
  elif [ ! -f "$from" ]; then
    case $from in
      *://*) ;;
      *) fail "there is no $from" ;;
    esac
    case $from in
      *.tar.gz) ;;
      *)
        [ -n "$version" ] || fail "this copy belongs to no release: name an archive: --from $from/….tar.gz"
        from=$from/toolhost-$version-$target.tar.gz
        ;;
    esac
  fi
  name=$(basename -- "$from" .tar.gz)

  # Everything is looked at in a copy that nobody else can change.
  work=$(mktemp -d) new=''
  trap 'rm -rf -- "$work" ${new:+"$new"}' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  fetch "$from" "$work/archive"
  fetch "${from%.tar.gz}.sha256" "$work/sums"
  expected=$(awk -v name="$name.tar.gz" '$2 == name || $2 == "*" name { print $1 }' "$work/sums")
  [ -n "$expected" ] || fail "the checksum file does not name $name.tar.gz; nothing was installed"
  [ "$(digest "$work/archive")" = "$expected" ] ||
    fail "$name.tar.gz is not what its checksum file says; nothing was installed"
  tar -xzf "$work/archive" -C "$work" "$name/toolhost" || fail "no program in $name.tar.gz"

  # In place at once, or not at all.
  mkdir -p -- "$to" || fail "cannot make $to"
  to=$(CDPATH='' cd -- "$to" && pwd)
  [ ! -d "$to/toolhost" ] || fail "$to/toolhost is a directory"
  if cmp -s "$work/$name/toolhost" "$to/toolhost" && [ -x "$to/toolhost" ]; then
    echo "$to/toolhost is $name already"
  else
    new=$(mktemp "$to/.toolhost.XXXXXX")
    cat "$work/$name/toolhost" >"$new"
    chmod 755 "$new"
    "$new" --version </dev/null >/dev/null || fail "the program of $name does not run here; nothing was installed"
    mv -f -- "$new" "$to/toolhost"
    new=''
    echo "installed $to/toolhost from $name"
  fi

  first=$(command -v toolhost || true)
  case ":$PATH:" in
    *":$to:"*) [ "$first" = "$to/toolhost" ] || echo "but toolhost is $first, which is earlier on PATH" ;;
    *) echo "$to is not on PATH; add it: export PATH=\"$to:\$PATH\"" ;;
  esac
}

# Last, so that half a download does nothing.
main "$@"
