#!/usr/bin/env bash
# fio writes to a served device at random over four connections, with flushes, and verifies every checksum. At the
# same time, two further connections write and trim another range. Then other clients connect. Default: 1024 MiB on
# the device `instant`, which takes no time.
#
#     examples/live/fio.sh [MIB] [OPTION OF flashtwin serve]...

source "$(dirname "$0")/disk.sh"
need flashtwin=flashtwin nbdkit=nbdkit fio=fio nbdinfo=libnbd-bin qemu-io=qemu-utils

mib=1024
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  mib=$1
  shift
fi
(($#)) || set -- --device instant --precondition none
serve --size "$((mib + mib / 8))M" --store "$place/data" "$@"

say "fio: $mib MiB over 4 connections, crc32c; beside them one that trims and one that writes what is trimmed"
cd "$place"
fio --ioengine=nbd --uri="$uri" --bs=16k --iodepth=16 --group_reporting \
  --name=verify --rw=randwrite --numjobs=4 --size=$((mib / 4))M --offset_increment=$((mib / 4))M --fsync=64 \
  --verify=crc32c --verify_fatal=1 --verify_state_save=0 \
  --name=write --rw=randwrite --offset=${mib}M --size=$((mib / 8))M --io_size=$((mib / 2))M --norandommap \
  --name=trim --rw=randtrim --offset=${mib}M --size=$((mib / 8))M --io_size=$((mib / 2))M --norandommap --fsync=16

say "nbdinfo"
nbdinfo "$uri"
say "nbdcopy: all of it out; 16 MiB in, and out again"
nbdcopy "$uri" null:
head -c 16M /dev/urandom >image
nbdcopy image "$uri"
# cmp closes the pipe after 16 MiB, so the error of nbdcopy is discarded.
cmp -n 16M image <(nbdcopy "$uri" - 2>/dev/null) && echo "the same"
say "qemu-img bench"
qemu-img bench -f raw -w -c 20000 -d 16 -s 4096 "$uri"
say "qemu-io"
qemu-io -f raw --discard=unmap -c 'write -P 7 1M 64k' -c flush -c 'read -P 7 1M 64k' -c 'discard 1M 32k' \
  -c 'read -P 0 1M 32k' -c 'write -z 2M 4k' -c 'read -P 0 2M 4k' "$uri"
