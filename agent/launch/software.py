"""The software of a job: environment modules, conda or venv by name, a container, put around its command.

Rule: pure. Each is a piece of POSIX shell that runs as the user on the host of the task, and becomes the command (exec); what is
not there is said by name on the task's standard error, and the task ends with 127, as a missing program does.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.launch.rootfs import ROOTFS
from proto import agent_pb2 as pb

_NO = """
lava_no() { printf 'lava: %s: %s\\n' "${LAVA_HOST:-this host}" "$1" >&2; exit 127; }
lava_has() { command -v "$1" >/dev/null 2>&1; }
lava_path() { CDPATH= cd "$1" >/dev/null 2>&1 && pwd; }
"""

_MODULES = (
    _NO
    + """
n=$1; shift
if ! lava_has module; then
    for f in "${MODULESHOME:-/none}/init/sh" "${LMOD_PKG:-/none}/init/sh" /usr/share/modules/init/sh \\
        /usr/share/lmod/lmod/init/sh /usr/local/Modules/init/sh /opt/lmod/lmod/init/sh /etc/profile.d/modules.sh \\
        /etc/profile.d/lmod.sh; do
        if [ -r "$f" ]; then . "$f"; break; fi
    done
fi
lava_has module || lava_no 'there are no environment modules here'
module purge >/dev/null 2>&1
while [ "$n" -gt 0 ]; do
    module load "$1" || lava_no "module $1 cannot be loaded"
    n=$((n - 1)); shift
done
exec "$@"
"""
)

_CONDA = (
    _NO
    + """
name=$1; shift
found=
case $name in
'~/'*) found=$HOME/${name#'~/'} name=$found ;;
*/*) found=$(lava_path "$name") ;;
*)
    IFS=:
    for folder in ${CONDA_ENVS_PATH-}; do
        if [ -z "$found" ] && [ -d "$folder/$name/conda-meta" ]; then found=$folder/$name; fi
    done
    unset IFS
    for root in "${CONDA_ROOT-}" "${CONDA_EXE:+${CONDA_EXE%/*/*}}" "${MAMBA_ROOT_PREFIX-}" "$HOME/miniconda3" \\
        "$HOME/miniforge3" "$HOME/mambaforge" "$HOME/anaconda3" "$HOME/micromamba" "$HOME/.conda" /opt/conda \\
        /opt/miniconda3 /opt/miniforge3 /opt/anaconda3; do
        if [ -n "$found" ] || [ -z "$root" ]; then continue; fi
        if [ "$name" = base ] && [ -d "$root/conda-meta" ]; then found=$root; fi
        if [ -d "$root/envs/$name/conda-meta" ]; then found=$root/envs/$name; fi
    done ;;
esac
[ -n "$found" ] && [ -d "$found/conda-meta" ] || lava_no "there is no conda environment $name here"
unset PYTHONHOME
PATH=$found/bin:$PATH CONDA_PREFIX=$found CONDA_DEFAULT_ENV=$name CONDA_SHLVL=1
export PATH CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL
for f in "$found"/etc/conda/activate.d/*.sh; do
    if [ -r "$f" ]; then . "$f"; fi
done
exec "$@"
"""
)

_VENV = (
    _NO
    + """
path=$1; shift
case $path in '~/'*) path=$HOME/${path#'~/'} ;; esac
[ -r "$path/pyvenv.cfg" ] && [ -x "$path/bin/python" ] || lava_no "there is no virtual environment in $path"
VIRTUAL_ENV=$(lava_path "$path")
PATH=$VIRTUAL_ENV/bin:$PATH
export VIRTUAL_ENV PATH
unset PYTHONHOME
exec "$@"
"""
)

_PODMAN = """
lava_option() { case $1 in --net|--net=*|--network|--network=*) network= ;; esac; }
lava_nproc() {
    n=$(ulimit "${1}u" 2>/dev/null) || n=$(ulimit "${1}p")
    most=$(cat /proc/sys/kernel/pid_max)
    if [ "$n" = unlimited ] || [ "$n" -gt "$most" ]; then n=$most; fi
    echo "$n"
}
lava_stale() {
    # of tasks that ended with SIGKILL, and podman with them; it says of them that they run until it is told to end them
    podman ps --all --filter label=lava --format '{{.ID}} {{index .Labels "lava"}}' | while read -r id owner; do
        comm=
        case $owner in "$LAVA_HOST":*) read -r comm <"/proc/${owner##*:}/comm" || : ;; *) continue ;; esac
        case $comm in podman|sh) ;; *) podman rm --force --time 0 "$id" || podman rm --force --time 0 "$id" ;; esac
    done
}
"""
"""For podman: whether an option names a network (ours is refused beside it); the limit of processes; ending what was left."""

_CONTAINER = (
    _NO
    + _PODMAN
    + """
image=$1 runner=$2 pull=$3 rootfs=$4 options=$5; shift 5
case $image in
*'$LSB_CONTAINER_IMAGE'*)
    [ -n "${LSB_CONTAINER_IMAGE-}" ] || lava_no "container $image: the job has no variable LSB_CONTAINER_IMAGE"
    before=${image%%'$LSB_CONTAINER_IMAGE'*} after=${image#*'$LSB_CONTAINER_IMAGE'}
    case $LSB_CONTAINER_IMAGE in -*) lava_no "container $LSB_CONTAINER_IMAGE: Bad image" ;; esac
    if [ -n "$before" ]; then
        # behind a folder or registry of the site's it stays there
        case /$LSB_CONTAINER_IMAGE/ in */../*) lava_no "container $LSB_CONTAINER_IMAGE: Bad image" ;; esac
    fi
    image=$before$LSB_CONTAINER_IMAGE$after ;;
esac
case $image in '~/'*) image=$HOME/${image#'~/'} ;; esac
if [ -z "$runner" ]; then
    for one in apptainer singularity; do
        if [ -z "$runner" ] && lava_has "$one"; then runner=$one; fi
    done
    if [ -z "$runner" ] && [ -d "$image" ]; then runner=unshare; fi
    if [ -z "$runner" ] && lava_has podman; then runner=podman; fi
    [ -n "$runner" ] || lava_no "container $image: there is no apptainer, singularity or podman here, and it is no folder"
fi
case $runner in
apptainer|singularity)
    # one program under its old and its new name
    if ! lava_has "$runner"; then
        for one in apptainer singularity; do if lava_has "$one"; then runner=$one; fi; done
    fi ;;
esac
lava_has "$runner" || lava_no "container $image: there is no $runner here"
cwd=$(pwd)
jobs=${LSB_JOBFILENAME-}; jobs=${jobs%/*}
lists=${LSB_DJOB_HOSTFILE-}; lists=${lists%/*}
if [ "$runner" != unshare ]; then
    # what follows are the options, then the command: the image comes between them, which takes one round through all
    left=$# network=--network=host
    set -f
    while [ "$left" -gt 0 ]; do
        word=$1 left=$((left - 1)); shift
        if [ "$options" -eq 0 ]; then set -- "$@" "$image"; fi
        options=$((options - 1))
        case $options:$word in
        -*) set -- "$@" "$word" ;;
        "$options":@/*)
            more=$("${word#@}") || lava_no "container $image: ${word#@} failed"
            for one in $more; do lava_option "$one"; done
            set -- "$@" $more ;;
        *) lava_option "$word"; set -- "$@" "$word" ;;
        esac
    done
    set +f
fi
case $runner in
apptainer|singularity)
    case $image in
    *://*) [ "$pull" != never ] || lava_no "container $image: $runner fetches it, and pull=never" ;;
    *) [ -e "$image" ] || lava_no "container $image: there is no such image" ;;
    esac
    for d in "$jobs" "$lists"; do
        if [ -n "$d" ] && [ -d "$d" ]; then set -- --bind "$d" "$@"; fi
    done
    if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then set -- --nv "$@"; fi
    set -- --pwd "$cwd" "$@"
    if [ "$cwd" != / ]; then set -- --bind "$cwd" "$@"; fi
    exec "$runner" --silent exec "$@" ;;
podman)
    case $image in /*) lava_no "container $image: there is no such folder, and podman takes names" ;; esac
    for d in "$jobs" "$lists" "$HOME" "$cwd"; do
        case $d in
        ''|/) continue ;;
        *:*) lava_no "container $image: podman takes no folder with a colon: $d" ;;
        esac
        if [ -d "$d" ]; then set -- --volume "$d:$d" "$@"; fi
    done
    if [ "$(id -u)" != 0 ]; then set -- --userns=keep-id "$@"; fi
    IFS=,
    for gpu in ${CUDA_VISIBLE_DEVICES-}; do set -- --device "nvidia.com/gpu=$gpu" "$@"; done
    unset IFS
    # as process 1 of the container a program without handlers would take no signal but KILL
    for one in /usr/libexec/podman/catatonit /usr/libexec/catatonit/catatonit "$(command -v catatonit)"; do
        if [ -x "$one" ]; then set -- --init "--init-path=$one" "$@"; break; fi
    done
    if [ -t 0 ] && [ -t 1 ]; then set -- --tty "$@"; fi
    # podman sets limits of its own, which may be more than those of the job, and than may be set
    set -- --ulimit "nofile=$(ulimit -Sn):$(ulimit -Hn)" --ulimit "nproc=$(lava_nproc -S):$(lava_nproc -H)" "$@"
    mine=$LAVA_HOST:$$
    if [ "${MPI_LOCALRANKID:-0}" = 0 ]; then lava_stale </dev/null >/dev/null 2>&1 & fi
    set -- run --rm --interactive --label "lava=$mine" --pull="$pull" $network --ipc=host --cgroups=disabled --env-host \\
        --volume /tmp:/tmp --workdir "$cwd" "$@"
    [ -n "${PMI_FD-}" ] || exec podman "$@"
    # podman hands on what is number 3; sh need not know numbers of two digits
    lava_has bash || lava_no "container $image: there is no bash here, which podman needs for MPI"
    shift
    exec bash -c '[ "$PMI_FD" = 3 ] || exec 3<&"$PMI_FD"- && PMI_FD=3 exec podman run --preserve-fds=1 "$@"' lava "$@" ;;
unshare)
    [ -d "$image" ] || lava_no "container $image: not a folder with a root file system"
    own="--mount --propagation private"
    user=$(id -u) group=$(id -g)
    if [ "$user" != 0 ]; then own="--user --map-root-user $own"; fi
    exec unshare $own /bin/sh -c "$rootfs" lava "$image" "$cwd" "$user" "$group" "$jobs" "$lists" "$@" ;;
*) lava_no "container $image: lava does not know $runner" ;;
esac
"""
)

_DJOB_ENV_SCRIPT = (
    _NO
    + """
script=$1; shift
case $script in /*) ;; *) script=${LSF_BINDIR-}/$script ;; esac
LSB_DJOB_ENV_SCRIPT=$script
export LSB_DJOB_ENV_SCRIPT
lava_script() {
    "$script" "$1" && return
    code=$?
    printf 'lava: %s: DJOB_ENV_SCRIPT: %s %s: exit code %d\\n' "${LAVA_HOST:-this host}" "$script" "$1" "$code" >&2
    return "$code"
}
lava_script setup || exit
trap : HUP INT QUIT TERM USR1 USR2
"$@"
status=$?
trap '' HUP INT QUIT TERM USR1 USR2
lava_script cleanup
exit "$status"
"""
)


def wrap(software: Sequence[pb.Software], argv: Sequence[str]) -> list[str]:
    """What is executed: the command inside of all that it asked for, the outermost first."""
    words = list(argv)
    for step in reversed(software):
        words = [*_STEPS[step.name](step.values), *words]
    return words


def _container(image: str, runner: str, pull: str, *options: str) -> list[str]:
    """``options``: words for the runner, which are the site's."""
    return _shell(_CONTAINER, image, runner, pull, _NO + ROOTFS, str(len(options)), *options)


def _shell(text: str, *values: str) -> list[str]:
    return ["/bin/sh", "-c", text, "lava", *values]


_STEPS = {
    "djob_env_script": lambda values: _shell(_DJOB_ENV_SCRIPT, *values),
    "modules": lambda values: _shell(_MODULES, str(len(values)), *values),
    "conda": lambda values: _shell(_CONDA, *values),
    "venv": lambda values: _shell(_VENV, *values),
    "container": lambda values: _container(*values),
    "container_with_options": lambda values: _container(*values),
}
