# Sourced by the other examples: serves a device, and mounts it if requested. At the end of the script,
# everything is undone, also after an error or a signal.

set -euo pipefail

place=$(mktemp -d "${TMPDIR:-/tmp}/flashtwin-example-XXXXXX")
chmod 755 "$place"
undo=("rm -rf --one-file-system '$place'")

# Runs the commands that `at_end` recorded, the last one first.
finish() {
  local code=$? i
  set +e
  for ((i = ${#undo[@]} - 1; i >= 0; i--)); do
    eval "${undo[i]}"
  done
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

at_end() {
  undo+=("$1")
}

say() {
  printf '\n== %s\n' "$*"
}

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# need TOOL=PACKAGE...: if a tool is missing, stops with the command that installs its package.
need() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
  done
  if ((${#missing[@]})); then
    fail "install what is missing: sudo apt-get install ${missing[*]}"
  fi
}

need_root() {
  [ "$(id -u)" = 0 ] || fail "run it as root: loop devices and mounts need that (serving does not)"
}

# Ends a process that this script started, and waits for it.
end_process() {
  kill -TERM "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}

# wait_until PID COMMAND...: repeats the command until it succeeds or the process has ended.
wait_until() {
  local pid=$1
  shift
  until "$@" >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || fail "$(cat "$place"/*.log)"
    sleep 0.1
  done
}

# serve OPTIONS...: serves a device; sets `uri`. At the end, prints the time that its requests took.
serve() {
  local socket="$place/nbd.sock" pid
  flashtwin serve --socket "$socket" "$@" >"$place/serve.log" 2>&1 &
  pid=$!
  at_end "end_process $pid; say 'what the device says'; sed '0,/^Ctrl-C\|^{\"uri\"/d' '$place/serve.log'"
  wait_until "$pid" test -S "$socket"
  uri="nbd+unix:///?socket=$socket"
}

# Creates a block device from the served device; sets `disk`.
attach() {
  local pid
  mkdir "$place/fuse"
  nbdfuse "$place/fuse/disk" "$uri" >"$place/fuse.log" 2>&1 &
  pid=$!
  at_end "fusermount3 -u '$place/fuse' || fusermount3 -u -z '$place/fuse'; wait $pid"
  wait_until "$pid" test -s "$place/fuse/disk"
  # Recorded first, because a signal ends the script directly after the command that it interrupts.
  disk=
  at_end 'losetup --detach ${disk:-$(losetup --noheadings --output NAME --associated "$place/fuse/disk")}'
  # Direct I/O: otherwise the kernel would store written data twice, and complete reads that should reach the
  # device.
  disk=$(losetup --find --show --direct-io=on "$place/fuse/disk")
}

# make ext4|xfs: creates a file system. It discards no blocks, because the flash would then have nothing to
# collect.
make() {
  case $1 in
    ext4) mkfs.ext4 -q -E nodiscard "$disk" ;;
    xfs) mkfs.xfs -q -f -K "$disk" ;;
  esac
}

# Mounts the existing file system; sets `mounted`.
mount_disk() {
  mounted="$place/mounted"
  mkdir -p "$mounted"
  # Recorded first, as above. Unmounts lazily if necessary: the device may already be gone.
  at_end "if mountpoint -q '$mounted'; then umount '$mounted' || umount --lazy '$mounted'; fi"
  mount "$disk" "$mounted"
}
