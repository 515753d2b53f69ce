set -eu
cd "$(dirname "$0")"

fail() {
  echo "$0: $1" >&2
  exit 1
}

command -v fio >/dev/null || fail "fio is missing: sudo apt-get install fio"
command -v nvme >/dev/null || fail "nvme is missing: sudo apt-get install nvme-cli"
[ -b "$TARGET" ] || fail "$TARGET is not a block device: counters need a drive"
if grep -q "^$TARGET[^ ]* " /proc/mounts; then
  fail "$TARGET or a part of it is mounted: unmount it first"
fi
if [ "${1-}" != --yes ]; then
  printf 'This overwrites all of %s, about %s minutes. Type yes to go on: ' "$TARGET" "$MINUTES"
  read -r answer
  [ "$answer" = yes ] || fail "nothing was done"
fi

# Reads every log that the drive has. Waits first, because some drives update their counters only once a
# minute.
counters() {
  sleep "$WAIT_S"
  {
    nvme smart-log -o json "$TARGET"
    nvme ocp smart-add-log -o json "$TARGET" ||
      nvme solidigm smart-log-add -o json "$TARGET" ||
      nvme intel smart-log-add -o json "$TARGET" ||
      nvme fdp stats -e 1 -o json "$TARGET" ||
      nvme endurance-log -g 1 -o json "$TARGET"
  } 2>/dev/null >"results/.$1"
  mv "results/.$1" "results/$1"
}

for experiment in $EXPERIMENTS; do
  name=${experiment%%:*}
  prepare=${experiment#*:}
  if [ -s "results/$name.after.json" ]; then
    continue
  fi
  echo "$name"
  if [ "$prepare" = discard ]; then
    blkdiscard -f "$TARGET"
  fi
  if [ -f "$name.before.fio" ]; then
    fio --output=/dev/null "$name.before.fio"
  fi
  counters "$name.before.json"
  fio --output="results/$name.fio.txt" "$name.fio"
  counters "$name.after.json"
done
echo "done: flashtwin calibrate counters $(pwd)/results"
