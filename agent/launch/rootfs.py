"""A folder with a root file system as a container, by nothing but util-linux: run inside a mount namespace of its own.

Rule: nothing is written into the folder, which stays read-only: a new root in memory has its top level bound in, then the host's
/proc, /dev, /sys and /tmp, the home and working folders. Without root the namespace is the user's, and they are themselves in it.
"""

from __future__ import annotations

ROOTFS = """
image=$1 cwd=$2 user=$3 group=$4 jobs=$5 lists=$6; shift 6
image=$(lava_path "$image") || lava_no "container $image: it cannot be entered"
root=
for d in /mnt /media /srv /boot /opt; do
    case "$cwd/ $HOME/ $image/ $jobs/ $lists/" in
    "$d"/*|*" $d"/*) ;;
    *) if [ -z "$root" ] && [ -d "$d" ] && mount -t tmpfs -o mode=755 lava "$d" 2>/dev/null; then root=$d; fi ;;
    esac
done
[ -n "$root" ] || lava_no "container $image: this user may not mount anything here (user namespaces)"
new=
for e in "$image"/* "$image"/.[!.]*; do
    name=${e##*/}
    to=$root/$name
    case $name in proc|dev|sys|tmp) continue ;; esac
    if [ -L "$e" ]; then
        cp -P "$e" "$to"
    elif [ -d "$e" ]; then
        mkdir "$to" && mount --rbind "$e" "$to" && { mount -o remount,bind,ro "$to" 2>/dev/null || :; }
    elif [ -e "$e" ]; then
        : >"$to" && mount --bind "$e" "$to"
    fi || lava_no "container $image: $name cannot be mounted"
done
for name in proc dev sys tmp; do
    mkdir -p "$root/$name" && mount --rbind "/$name" "$root/$name" || lava_no "container $image: /$name cannot be mounted"
done
for d in "$HOME" "$jobs" "$lists" "$cwd"; do
    case $d in ''|/|/tmp|/tmp/*|/dev/*|/proc/*) continue ;; esac
    [ -d "$d" ] || continue
    top=${d#/}; top=${top%%/*}
    case " $new " in
    *" $top "*) ;;
    *)
        if [ ! -d "$root$d" ]; then
            case $top in
            bin|sbin|lib|lib32|lib64|usr|etc) lava_no "container $image: it has no folder $d, and none can be made there" ;;
            esac
            mkdir -p "$root/$top" && mount -t tmpfs -o mode=755 lava "$root/$top" || lava_no "container $image: no place for $d"
            new="$new $top"
        fi ;;
    esac
    [ -d "$root$d" ] || mkdir -p "$root$d" || lava_no "container $image: no place for $d"
    mount --rbind "$d" "$root$d" || lava_no "container $image: $d cannot be mounted"
done
for f in /etc/resolv.conf /etc/hosts /etc/passwd /etc/group; do
    if [ -f "$f" ] && [ -f "$root$f" ]; then mount --bind "$f" "$root$f" 2>/dev/null; fi
done
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
export PATH
if [ "$user" = 0 ]; then exec unshare --root="$root" --wd="$cwd" -- "$@"; fi
exec unshare --user --map-user="$user" --map-group="$group" --root="$root" --wd="$cwd" -- "$@"
"""
