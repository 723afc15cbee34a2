#!/bin/sh
# One kill by hand, without labkit: PYTHON must have pyspark (and Java), cc must be there. Leaves nothing behind.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -shared -fPIC -o "$work/killer.so" "$here/killer.c" -ldl || exit 1
mkdir "$work/input"
echo '{"id": 1}' > "$work/input/1.json"
echo "first start, killed before the rename to offsets/0"
LD_PRELOAD="$work/killer.so" "$python" "$here/job.py" "$work" > "$work/first.log" 2>&1
ls -A "$work/checkpoint/offsets"
echo "second start, nobody kills"
"$python" "$here/job.py" "$work" > "$work/second.log" 2>&1
grep -m 1 -E 'the job has ended|StreamingQueryException|IllegalStateException|STREAMING_|CHECKPOINT' "$work/second.log" || tail -3 "$work/second.log"
