set -eu
cd "$(dirname "$0")"
usage="usage: $0 [--yes] [--force]
  --yes    do not ask before the target is overwritten
  --force  overwrite a target that has partitions or holders"
yes=no
force=no
for argument; do
  case $argument in
    --yes) yes=yes ;;
    --force) force=yes ;;
    *)
      echo "$usage" >&2
      exit 2
      ;;
  esac
done

fail() {
  echo "$0: $1" >&2
  exit 1
}

command -v fio >/dev/null || fail "fio is missing: sudo apt-get install fio"
if [ -b "$TARGET" ]; then
  size=$(blockdev --getsize64 "$TARGET")
  [ "$size" -ge "$CAPACITY" ] || fail "$TARGET has $size bytes, the plan is for $CAPACITY: plan again"
  if grep -q "^$TARGET[^ ]* " /proc/mounts; then
    fail "$TARGET or a part of it is mounted: unmount it first"
  fi
  name=$(basename "$TARGET")
  if [ "$force" = no ] && { ls -d "/sys/class/block/$name/$name"* || ls "/sys/class/block/$name/holders/"*; } >/dev/null 2>&1; then
    fail "$TARGET has partitions or holders: --force overwrites them all the same"
  fi
elif [ "$NETWORK" = no ] && [ -e "$TARGET" ] && [ ! -f "$TARGET" ]; then
  fail "$TARGET is neither a block device nor a file"
fi

echo "$TARGET: about $MINUTES minutes"
if [ "$READ_ONLY" = no ] && [ "$yes" = no ]; then
  printf 'This overwrites the first %s bytes of %s. Type yes to go on: ' "$CAPACITY" "$TARGET"
  read -r answer
  [ "$answer" = yes ] || fail "nothing was done"
fi

# Discards all data of the target, so that it is like a new drive.
empty() {
  if [ "$NETWORK" = yes ]; then
    fio --output=/dev/null empty.fio
  elif [ -b "$TARGET" ]; then
    blkdiscard -f -l "$CAPACITY" "$TARGET" 2>/dev/null || echo "  no discard: earlier data stay" >&2
  else
    rm -f "$TARGET"
    truncate -s "$CAPACITY" "$TARGET"
  fi
}

# Runs one job of a file of fio. Its output is either complete or absent.
measure() {
  fio --section="$1" --output-format=json+ --output="results/.$1" "$2.fio"
  mv "results/.$1" "$3"
}

# Brings the drive into a state. The state is recorded until the next one is reached, so that an interrupted
# script continues in it.
prepare() {
  [ "$READ_ONLY" = no ] || return 0
  if [ "$1" = empty ]; then
    empty
    echo empty >results/state
  elif [ "$(cat results/state 2>/dev/null)" != "$1" ]; then
    echo "bringing the drive into its state: $1"
    if [ "$1" = filled ]; then empty; fi
    if [ "$1" = refilled ]; then prepare filled; fi
    if [ "$1" = trimmed ]; then prepare steady; fi
    echo none >results/state
    fio --output=/dev/null "$1.fio"
    echo "$1" >results/state
  fi
}

total=$(echo "$EXPERIMENTS" | wc -w)
done=0
for experiment in $EXPERIMENTS; do
  state=${experiment%%:*}
  name=${experiment#*:}
  done=$((done + 1))
  if [ -s "results/$name.json" ]; then
    continue
  fi
  prepare "$state"
  echo "$done of $total: $name"
  if grep -q '^\[warmup\]' "$name.fio"; then
    measure warmup "$name" results/.warmup.done
  fi
  measure "$name" "$name" "results/$name.json"
done
echo "done: flashtwin calibrate fit $(pwd)/results -o mydrive.toml --report fit.html"
