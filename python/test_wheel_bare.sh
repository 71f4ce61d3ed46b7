#!/usr/bin/env bash
# Tests the wheel of build/python/dist where nothing is installed that could stand in for what it carries: in a Debian 12
# root with Python alone, no compiler, LLVM, oneTBB or fmt.
#
#   sudo python/test_wheel_bare.sh ROOT [INTERPRETER...]
#
# ROOT is made by debootstrap unless it is there. Without interpreters Debian's own is tested; others (pyenv's, uv's) are
# named by their paths here and mounted. pip works inside as it does here. The tests' reference comes from build/release.
set -euo pipefail
script=$(realpath "$0")
cd "$(dirname "$script")/.."
root=$(realpath -m "${1:?test_wheel_bare.sh: name a directory for the root}")
shift

# The mounts are this process's own, and go with it.
[ "${BILOGP_OWN_MOUNTS:-}" = yes ] || exec env BILOGP_OWN_MOUNTS=yes unshare --mount "$script" "$root" "$@"

if [ ! -d "$root/usr" ]; then
  debootstrap --variant=minbase bookworm "$root"
fi
show_inside() { mkdir -p "$root$1" && mount --rbind "$1" "$root$1"; }
passed_on=(PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root TERM=dumb)
while IFS= read -r variable; do passed_on+=("$variable"); done < <(env | grep -E '^(PIP_|SSL_|REQUESTS_CA_BUNDLE=|BILOGP_TEST_)' || true)
inside() { env -i "${passed_on[@]}" chroot "$root" "$@"; }

mount -t proc proc "$root/proc"
show_inside /dev
show_inside "$PWD"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
if [ ! -x "$root/usr/bin/python3" ]; then
  inside apt-get -q update
  inside apt-get -qy install --no-install-recommends python3 python3-venv
fi
mkdir -p "$root/etc/ssl/certs"
mount --bind /etc/ssl/certs "$root/etc/ssl/certs"

for forbidden in c++ g++ gcc cc clang clang-19; do
  if inside sh -c "command -v $forbidden"; then
    echo "test_wheel_bare.sh: $root has $forbidden, but is to be bare; name another directory" >&2
    exit 1
  fi
done
if inside ldconfig -p | grep -E 'libLLVM|libclang|libtbb|libfmt'; then
  echo "test_wheel_bare.sh: $root has libraries that the wheel carries; name another directory" >&2
  exit 1
fi

for interpreter in "$@"; do show_inside "$("$interpreter" -c 'import sys; print(sys.base_prefix)')"; done
[ $# -gt 0 ] || set -- /usr/bin/python3
export BILOGP_TEST_REFERENCE=${BILOGP_TEST_REFERENCE:-$PWD/build/release/libbilogp_reference_c.so}
passed_on+=("BILOGP_TEST_REFERENCE=$BILOGP_TEST_REFERENCE")
inside "$PWD/python/test_wheel.sh" "$@"
