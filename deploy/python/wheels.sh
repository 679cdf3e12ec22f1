#!/bin/bash
# Builds wheels of realmgate, with its parts in C: into DIR (default dist) for the Python of .venv, into DIR/VERSION for
# each other Python from 3.11 to 3.13 that is on this machine; none is downloaded. Beside each it puts what has no wheel
# in the package index (python-qpid-proton), so that `pip install DIR/*.whl` needs no compiler.
#   deploy/python/wheels.sh [DIR]       PYTHONS="3.11 /opt/python3.12": only these
#   deploy/python/wheels.sh --pythons   builds nothing: prints a line each, VERSION INTERPRETER
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/.venv/bin

if command -v pyenv >/dev/null; then # those that it has built and not made active
  for directory in "$(pyenv root)"/versions/3.1[123].*/bin; do PATH=$PATH:$directory; done
fi
python_of() { # VERSION or PATH: its interpreter, if there is one; not by pyenv's shims, which name what does not run
  PATH=${PATH//pyenv\/shims/-} "$bin/uv" python find --no-project --no-python-downloads "$1" 2>/dev/null
}
pythons() { # VERSION INTERPRETER, of each
  local version own python
  own=$("$bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  for version in ${PYTHONS:-3.11 3.12 3.13}; do
    if [ "$version" = "$own" ]; then
      echo "$version $bin/python"
    elif python=$(python_of "$version"); then
      echo "$version $python"
    else
      echo "wheels: left out: this machine has no Python $version" >&2
    fi
  done
}
if [ "${1:-}" = --pythons ]; then
  pythons
  exit
fi

mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# From a copy: a build leaves files beside its sources, and takes along what an earlier one left.
tar -c --exclude=__pycache__ --exclude='*.so' --exclude=.venv pyproject.toml README.md LICENSE \
  console gateway mappings native_backend reconciliation transformers | tar -x -C "$work"

pythons | while read -r version python; do
  into=$out
  tools=$bin/python # its build tools are those of build.lock
  if [ "$python" != "$tools" ]; then
    into=$out/${version##*/}
    tools=$work/tools-${version##*/}/bin/python
    "$python" -m venv "$work/tools-${version##*/}"
    "$bin/uv" pip install -q --python "$tools" --require-hashes -r deploy/python/build.lock
  fi
  rm -rf "$work/build" "$work"/*.egg-info
  for source in "$work" python-qpid-proton==$(sed -n 's/^python-qpid-proton==\([^ ]*\).*/\1/p' requirements.lock); do
    "$tools" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$into" "$source"
  done
done
find "$out" -name "*.whl" | sort
