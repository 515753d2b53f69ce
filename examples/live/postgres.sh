#!/usr/bin/env bash
# Runs PostgreSQL, and pgbench with 8 clients, on a served device. Needs root for the loop device and the
# mount.
#
#     sudo examples/live/postgres.sh [OPTION OF flashtwin serve]...
#
# With --store FILE, the database of an earlier run is used if there is one.
# RUN_S: length of the run in seconds (default: 60; 0 only loads the data). SCALE: scale factor of pgbench
# (default: 50, 750 MB). PERCENTILE: which percentile of response times is printed (default: 95).

source "$(dirname "$0")/disk.sh"
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
need pg_ctl=postgresql pgbench=postgresql flashtwin=flashtwin nbdkit=nbdkit nbdfuse=libnbd-bin fusermount3=fuse3
need_root
run_s=${RUN_S:-60} scale=${SCALE:-50} percentile=${PERCENTILE:-95}

(($#)) || set -- --device nvme-tlc --size 8G
serve "$@"
attach
blkid "$disk" >/dev/null || make ext4
mount_disk

data="$mounted/postgres"
mkdir "$place/run"
chown postgres "$place/run"
as_postgres() {
  # Where it may be, whoever calls.
  (cd "$place/run" && runuser -u postgres -- "$@")
}
export PGHOST="$place/run" PGUSER=postgres PGDATABASE=postgres

new=
if [ ! -d "$data" ]; then
  say "a new database of scale $scale"
  new=yes
  install -d -o postgres -m 700 "$data"
  as_postgres "$(command -v initdb)" -D "$data" --no-sync >/dev/null
fi
# A small cache, so that reads reach the device. No network socket is opened.
as_postgres "$(command -v pg_ctl)" -D "$data" -w -l "$place/run/log" start -o \
  "-c listen_addresses='' -c unix_socket_directories='$place/run' -c shared_buffers=32MB -c max_wal_size=1GB"
at_end "as_postgres '$(command -v pg_ctl)' -D '$data' -m fast -w stop"
[ -z "$new" ] || pgbench --initialize --quiet --scale "$scale"

if ((run_s)); then
  say "pgbench: 8 clients, $run_s s"
  (cd "$place/run" && pgbench --client 8 --jobs 2 --time "$run_s" --no-vacuum --log)
  sort -n -k 3,3 "$place"/run/pgbench_log.* | awk -v p="$percentile" '{ t[NR] = $3 }
    END { i = int(NR * p / 100); printf "p%s = %.1f ms\n", p, t[i < 1 ? 1 : i] / 1000 }'
fi
