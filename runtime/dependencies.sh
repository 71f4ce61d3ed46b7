#!/bin/sh
# Installs the Debian or Ubuntu packages that building needs and this machine lacks: Debian 12 and 13, Ubuntu 24.04.
#
#   runtime/dependencies.sh [build] [test] [lint] [bench]      (no words: build)
#   runtime/dependencies.sh --list ...                          only prints the names of all packages for these words
#
# Says what it installs. Where nothing is missing it installs nothing, asks for no password and needs no network.
set -eu

llvm=${BILOGP_LLVM_VERSION:-19}

packages_for() {
  case $1 in
  build) echo "cmake ninja-build g++ pkg-config ccache
      llvm-$llvm-dev libclang-$llvm-dev libclang-cpp$llvm-dev zlib1g-dev libzstd-dev
      libsqlite3-dev libxxhash-dev libtbb-dev libcli11-dev libfmt-dev nlohmann-json3-dev" ;;
  test) echo "doctest-dev libmpfr-dev qemu-user-static g++-aarch64-linux-gnu clang-$llvm libclang-rt-$llvm-dev python3 python3-dev python3-pip python3-venv" ;;
  lint) echo "clang-format-19 clang-tidy-19" ;;
  bench) echo "libbenchmark-dev" ;;
  *)
    echo "dependencies.sh: unknown word '$1'; expected build, test, lint or bench" >&2
    return 2
    ;;
  esac
}

# True for an installed package, also where another package provides it under this name.
is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}\n' "$1" 2>/dev/null | sort -u)" = installed ]
}

only_list=no
if [ "${1:-}" = --list ]; then
  only_list=yes
  shift
fi
[ $# -gt 0 ] || set -- build

wanted=
for word in "$@"; do
  names=$(packages_for "$word")
  wanted="$wanted $names"
done
if [ $only_list = yes ]; then
  printf '%s\n' $wanted
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "dependencies.sh: no apt on this machine, so nothing is installed; the build needs the equivalents of:" $wanted >&2
  exit 0
fi

missing=
for name in $wanted; do
  is_installed "$name" || missing="$missing $name"
done
if [ -z "$missing" ]; then
  echo "All packages needed are installed."
  exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "dependencies.sh: these packages are missing and there is no sudo; as root, run: apt-get install$missing" >&2
    exit 1
  fi
  as_root=sudo
fi

echo "Installing Debian packages:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A repository that has nothing to do with us may be unreachable: an update that fails is told only if the install does.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y update >"$log" 2>&1 || true
if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing >>"$log" 2>&1 </dev/null; then
  tail -n 40 "$log" >&2
  echo "dependencies.sh: apt-get could not install:$missing" >&2
  exit 1
fi
echo "Installed."
