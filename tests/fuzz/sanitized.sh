#!/bin/bash
# Run a command with the parts in C built by the address and undefined-behaviour sanitizers: what they find ends it.
# Usage: tests/fuzz/sanitized.sh python -m tests.fuzz ...      It builds into .cache/sanitized.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$PWD/.venv/bin/python
into=$PWD/.cache/sanitized
flags="-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"

rm -rf "$into" && mkdir -p "$into"
cp -r gateway mappings native_backend transformers reconciliation "$into/"
find "$into" \( -name '*.so' -o -name __pycache__ \) -prune -exec rm -rf {} +
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
while read -r source; do
  built=$into/${source%.c}$suffix
  # shellcheck disable=SC2086
  gcc -shared -fPIC -Wall -Wextra -Wno-unused-parameter -Wno-cast-function-type -Wno-missing-field-initializers $flags \
    "-I$include" "$into/$source" -o "$built"
done < <(git ls-files '*.c' | grep -E '^(gateway|native_backend|transformers)/')

export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8:allocator_may_return_null=1 # Python frees little at its end
export UBSAN_OPTIONS=print_stacktrace=1
export PYTHONMALLOC=malloc # or an overrun within Python's own arenas is not seen
export PYTHONPATH=$into:$PWD PYTHONSAFEPATH=1 PATH=$PWD/.venv/bin:$PATH
exec "$@"
