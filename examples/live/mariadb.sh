#!/usr/bin/env bash
# Runs MariaDB, and sysbench oltp_read_write with 8 threads, on a served device. Needs root for the loop
# device and the mount.
#
#     sudo examples/live/mariadb.sh [OPTION OF flashtwin serve]...
#
# With --store FILE, the database of an earlier run is used if there is one.
# RUN_S: length of the run in seconds (default: 60; 0 only loads the data). ROWS: rows of each of the 8 tables
# (default: 400000, together 800 MB). PERCENTILE: which percentile of response times is printed (default: 95).

source "$(dirname "$0")/disk.sh"
need mariadbd=mariadb-server mariadb-admin=mariadb-client sysbench=sysbench flashtwin=flashtwin nbdkit=nbdkit \
  nbdfuse=libnbd-bin fusermount3=fuse3
need_root
run_s=${RUN_S:-60} rows=${ROWS:-400000} percentile=${PERCENTILE:-95}

(($#)) || set -- --device nvme-tlc --size 8G
serve "$@"
attach
blkid "$disk" >/dev/null || make ext4
mount_disk

data="$mounted/mariadb"
socket="$place/run/sock"
mkdir "$place/run"
chown mysql "$place/run"

new=
if [ ! -d "$data" ]; then
  say "a new database of 8 tables with $rows rows"
  new=yes
  install -d -o mysql -m 700 "$data"
  mariadb-install-db --no-defaults --user=mysql --datadir="$data" --skip-test-db >"$place/install.log"
fi
# A small cache, and no second one in the kernel, so that reads reach the device. No network socket is opened.
mariadbd --no-defaults --user=mysql --datadir="$data" --socket="$socket" --skip-networking \
  --pid-file="$place/run/pid" --innodb-buffer-pool-size=64M --innodb-flush-method=O_DIRECT \
  --innodb-log-file-size=512M >"$place/mariadb.log" 2>&1 &
server=$!
at_end "end_process $server"
wait_until "$server" mariadb-admin --no-defaults --socket="$socket" --user=root ping

load=(sysbench oltp_read_write --mysql-socket="$socket" --mysql-user=root --mysql-db=sbtest
  --tables=8 --table-size="$rows" --threads=8)
if [ -n "$new" ]; then
  mariadb --no-defaults --socket="$socket" --user=root -e 'CREATE DATABASE sbtest'
  "${load[@]}" prepare
fi

if ((run_s)); then
  say "sysbench oltp_read_write: 8 threads, $run_s s"
  # sysbench itself prints only whole percentiles.
  "${load[@]}" --time="$run_s" --rand-type=uniform --histogram run | awk -v p="$percentile" '
    / \|/ { upper[++n] = $1; all += count[n] = $NF; next }
    { print }
    END { for (i = 1; i <= n && sum < all * p / 100; i++) sum += count[i]
      printf "p%s = %.1f ms\n", p, upper[i - 1] }'
fi
