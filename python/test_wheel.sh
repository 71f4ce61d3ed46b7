#!/usr/bin/env bash
# Installs the wheel of build/python/dist into a fresh environment of every interpreter named and runs the numpy tests
# there, away from the source tree:  python/test_wheel.sh python3.10 python3.13 ...
#
# Needs the tests' reference (BILOGP_TEST_REFERENCE) and pip's packages; PIP_NO_INDEX and PIP_FIND_LINKS work.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=$(ls "$PWD"/build/python/dist/bilogp-*.whl)
tests=$PWD/tests/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BILOGP_CACHE_DIR=$work/store
for python in "$@"; do
  echo "== $("$python" --version), $(basename "$wheel")"
  "$python" -m venv "$work/environment"
  "$work/environment/bin/pip" install --quiet "$wheel" ml_dtypes pytest hypothesis
  (cd "$work" && "$work/environment/bin/python" -m pytest -q -p no:cacheprovider --rootdir "$tests" -c /dev/null "$tests")
  (cd "$work" && "$work/environment/bin/python" -m bilogp doctor --json >doctor.json && grep '"component"' doctor.json)
  rm -rf "$work/environment" "$work/store"
done
