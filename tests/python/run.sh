#!/usr/bin/env bash
# Installs the package into a virtual environment and tests it there.
#
#   tests/python/run.sh numpy      the package over numpy's arrays, and its types
#   tests/python/run.sh torch      everything, with torch, jax and TRL from PyPI (6 GB of disk)
#
# PYTHON names the interpreter, 3.10 or newer. Each environment is made once and installed into again only when its
# requirements change, so that later runs need no network. Where pip cannot install them there is nothing to test: the
# step says why and is skipped, but in CI it fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

kind=${1:?run.sh: say which tests, numpy or torch}
python=${PYTHON:-python3}
environment=build/python/$kind
requirements=tests/python/requirements-$kind.txt
stamp=$environment/requirements.sum
wanted=$(cat tests/python/requirements-*.txt | sha256sum; "$python" --version)

give_up() {
  echo "run.sh: $1; the Python tests are skipped" >&2
  [ "${CI:-}" = true ] && exit 1
  exit 0
}

# Runs pip, or a script that does, and shows what it says; its first complaint is why it failed.
with_pip() {
  local said=$environment/pip.log
  "$@" 2>&1 | tee "$said" >&2 ||
    give_up "pip failed: $(grep -m 1 -E '^(WARNING|ERROR)' "$said" | cut -c 1-400)"
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  give_up "$python is older than Python 3.10; name another in PYTHON"
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  "$python" -m venv --clear "$environment" || give_up "$python cannot make environments; install python3-venv"
  echo "Installing $requirements from PyPI into $environment"
  with_pip "$environment/bin/pip" install --quiet --no-compile -r "$requirements"
  if [ "$kind" = torch ]; then with_pip tests/python/fetch_frameworks.sh "$environment"; fi
  echo "$wanted" >"$stamp"
fi

# An environment that is active outside must not be found instead of this one.
unset VIRTUAL_ENV PYTHONPATH PYTHONHOME
bin=$PWD/$environment/bin
# One build for all environments: the extension has the stable ABI.
"$bin/pip" install --quiet --no-build-isolation --no-deps --force-reinstall . --config-settings=build-dir=build/python/package
export BILOGP_TEST_REFERENCE=${BILOGP_TEST_REFERENCE:-$PWD/build/release/libbilogp_reference_c.so}
if [ "$kind" = numpy ]; then
  "$bin/ruff" check --quiet
  "$bin/ruff" format --check --quiet
  "$bin/mypy"
fi
exec "$bin/python" -m pytest -q tests/python "${@:2}"
