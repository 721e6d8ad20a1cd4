"""A site's pair of checkpoint programs in shell, which save and restore a job that counts, and the job itself."""

from __future__ import annotations

from pathlib import Path

JOB = """\
n=${1:-0}
echo "from $n"
while :; do n=$((n+1)); echo $n > count.new; mv count.new count; sleep 0.02; done
"""
ECHKPNT = """\
#!/bin/sh
kill=
[ "$1" = -k ] && { kill=yes; shift; }
[ "$1" = -d ] && [ "$2" = "$LSB_CHKPNT_DIR" ] && [ "$3" = "${LSB_JOBPIDS%% *}" ] && [ -n "$LSB_JOBID" ] || exit 9
echo "writes $LSB_JOBID"
case $(cat "$0.mode" 2>/dev/null) in
waits) touch $2/begun; until [ -e "$0.go" ]; do sleep 0.05; done ;;
hangs) echo part > $2/half; exec sleep 1000 ;;
killed) kill -9 $$ ;;
fails) echo half > $2/half; exit 3 ;;
lies) exit 0 ;;
nonsense) echo x > $2/MANIFEST; exit 0 ;;
esac
mkdir $2/state && cp count $2/state/count || exit 5
[ -z "$kill" ] || kill -9 -$3
"""
ERESTART = """\
#!/bin/sh
[ "$1" = "$LSB_CHKPNT_DIR" ] || exit 9
[ "$(cat "$0.mode" 2>/dev/null)" != fails ] || exit 4
echo "LSB_RESTART_CMD=exec sh count.sh $(cat $1/state/count)" > $1/.restart_cmd
"""


def write_programs(folder: Path, name: str = "count") -> None:
    """``echkpnt.NAME`` and ``erestart.NAME`` in a folder; a file ``PROGRAM.mode`` beside each says how it goes wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in (("echkpnt", ECHKPNT), ("erestart", ERESTART)):
        path = folder / f"{kind}.{name}"
        path.write_text(text)
        path.chmod(0o755)


def write_job(folder: Path) -> None:
    """The job: ``sh count.sh`` in this folder, which counts from 0 or its argument into the file ``count``."""
    (folder / "count.sh").write_text(JOB)
