# Sourced by the examples beside it: a served device, mounted if that is wanted, and all of it undone at the end,
# however that comes.

set -euo pipefail

place=$(mktemp -d "${TMPDIR:-/tmp}/flashtwin-example-XXXXXX")
chmod 755 "$place"
undo=("rm -rf --one-file-system '$place'")

# Runs what was noted for the end, the last first.
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

# need TOOL=PACKAGE...: stops with the line that installs what is missing.
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

# Ends a process that was started here, and waits for it.
end_process() {
  kill -TERM "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}

# wait_until PID COMMAND...: until the command succeeds, or the process has ended.
wait_until() {
  local pid=$1
  shift
  until "$@" >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || fail "$(cat "$place"/*.log)"
    sleep 0.1
  done
}

# serve OPTIONS...: serves a device; sets `uri`. What its requests took is said at the end.
serve() {
  local socket="$place/nbd.sock" pid
  flashtwin serve --socket "$socket" "$@" >"$place/serve.log" 2>&1 &
  pid=$!
  at_end "end_process $pid; say 'what the device says'; sed '0,/^Ctrl-C\|^{\"uri\"/d' '$place/serve.log'"
  wait_until "$pid" test -S "$socket"
  uri="nbd+unix:///?socket=$socket"
}

# Makes a block device of what is served; sets `disk`.
attach() {
  local pid
  mkdir "$place/fuse"
  nbdfuse "$place/fuse/disk" "$uri" >"$place/fuse.log" 2>&1 &
  pid=$!
  at_end "fusermount3 -u '$place/fuse' || fusermount3 -u -z '$place/fuse'; wait $pid"
  wait_until "$pid" test -s "$place/fuse/disk"
  # Noted before: a signal ends the script right after the command that it interrupts.
  disk=
  at_end 'losetup --detach ${disk:-$(losetup --noheadings --output NAME --associated "$place/fuse/disk")}'
  # Direct: otherwise the kernel would keep written data twice, and serve reads that the device should.
  disk=$(losetup --find --show --direct-io=on "$place/fuse/disk")
}

# make ext4|xfs: a file system; without a discard of everything, which would leave the flash nothing to collect.
make() {
  case $1 in
    ext4) mkfs.ext4 -q -E nodiscard "$disk" ;;
    xfs) mkfs.xfs -q -f -K "$disk" ;;
  esac
}

# Mounts the file system that is there; sets `mounted`.
mount_disk() {
  mounted="$place/mounted"
  mkdir -p "$mounted"
  # Noted before, as above. Lazily if necessary: if everything ends at once, the device may be gone.
  at_end "if mountpoint -q '$mounted'; then umount '$mounted' || umount --lazy '$mounted'; fi"
  mount "$disk" "$mounted"
}
