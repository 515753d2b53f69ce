#!/usr/bin/env bash
# Creates, fills and checks ext4 and XFS on a served device. Needs root for the loop device and the mount.
#
#     sudo examples/live/filesystems.sh [OPTION OF flashtwin serve]...

source "$(dirname "$0")/disk.sh"
need flashtwin=flashtwin nbdkit=nbdkit nbdfuse=libnbd-bin fusermount3=fuse3 losetup=mount \
  mkfs.ext4=e2fsprogs mkfs.xfs=xfsprogs
need_root

(($#)) || set -- --device demo --size 1G
serve "$@"
attach

for kind in ext4 xfs; do
  say "$kind: made and filled"
  make "$kind"
  mount_disk
  # Fills the file system. Then files whose numbers are odd are removed, and five new files are written.
  head -c 32M /dev/urandom >"$place/data"
  (for i in {1..10000}; do cp "$place/data" "$mounted/$i" || break; done) 2>/dev/null || true
  rm "$mounted"/*[13579]
  for i in {1..5}; do cp "$place/data" "$mounted/again-$i"; done
  fstrim -v "$mounted"
  df -h "$mounted"
  umount "$mounted"

  say "$kind: checked"
  case $kind in
    ext4) e2fsck -f -n "$disk" ;;
    xfs) xfs_repair -n "$disk" ;;
  esac
  mount_disk
  for i in {1..5}; do cmp "$place/data" "$mounted/again-$i"; done
  umount "$mounted"
  echo "clean, and what was written is there"
done
