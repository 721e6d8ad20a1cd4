#!/bin/bash
# Three steps, each behind the one before: parameters, a job for each of them, and what becomes of their results; and a job for the
# case that a step fails.  usage: workflow.sh FOLDER   (docs/examples.md)
set -eu
folder=$1
mkdir -p "$folder"
submit() { bsub -cwd "$folder" -o "$folder/%J.out" "$@" | sed -n 's/^Job <\([0-9]*\)>.*/\1/p'; }

parameters=$(submit -J parameters 'seq 1 4 > parameters')
parts=$(submit -J 'part[1-4]' -w "done($parameters)" \
    'n=$(sed -n "${LSB_JOBINDEX}p" parameters); echo $((n * n)) > part.$LSB_JOBINDEX')
sum=$(submit -J sum -w "done($parts)" 'awk "{ s += \$1 } END { print s }" part.* > sum')
failed=$(submit -J failed -w "exit($parameters) || exit($parts) || exit($sum)" 'echo "a step failed" > failed')

bwait -w "ended($sum) || ended($failed)"
if [ -e "$folder/failed" ]; then
    echo "a step failed: bhist -l $parameters $parts $sum" >&2
    exit 1
fi
bkill "$failed" > /dev/null # nothing failed that it waits for
cat "$folder/sum"
