//! Job files of fio: the requests that they describe, and errors that name the line.

use flashtwin::{Op, Request};
use flashtwin_workload::{ErrorKind, LoadSpec, WorkloadError};
use std::collections::BTreeSet;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

/// A job file that is removed at the end of the test.
struct Job(PathBuf);

impl Job {
    fn new(name: &str, text: impl AsRef<[u8]>) -> Job {
        let file = format!("flashtwin_{}_{name}.fio", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, text).unwrap();
        Job(path)
    }

    fn load(&self, more: &str) -> Result<LoadSpec, WorkloadError> {
        LoadSpec::parse(&format!("fio-job:file={}{more}", self.0.display()))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn draw(name: &str, text: &str, more: &str) -> Vec<Request> {
    let job = Job::new(name, text);
    let mut load = job.load(more).unwrap().build(100 * MIB, 1).unwrap();
    let mut requests = Vec::new();
    while load.next_batch(&mut requests).unwrap() > 0 {}
    requests
}

#[test]
fn phases_follow_each_other_and_jobs_of_one_run_at_the_same_time() {
    let text = "
; fills, then mixes
[global]
ioengine=libaio
direct=1
bs=4k
[fill]
rw = write
bs = 128K
size=50%
[overwrite]
stonewall
rw=randwrite
size=16m
fdp=1
fdp_pli=3
[log]
rw=write
offset=64m
size=32MiB
bs=64k
";
    let requests = draw("phases", text, "");
    let fill = &requests[..400];
    for (i, request) in (0..).zip(fill) {
        assert_eq!(
            (request.op, request.offset, request.bytes),
            (Op::Write, i * (128 << 10), 128 << 10)
        );
        assert_eq!(request.placement.get(), None);
    }
    let (large, small): (Vec<&Request>, Vec<&Request>) =
        requests[400..].iter().partition(|r| r.bytes == 64 << 10);
    // The two jobs have 4096 + 512 requests in all. The order is random, and so is the number of
    // requests from each job.
    assert_eq!(large.len() + small.len(), 4096 + 512);
    assert!((400..630).contains(&large.len()), "{}", large.len());
    assert!(large
        .iter()
        .all(|r| r.offset >= 64 * MIB && r.offset < 96 * MIB && r.placement.get().is_none()));
    assert!(small
        .iter()
        .all(|r| r.offset < 16 * MIB && r.placement.get() == Some(3)));
    // fio's random map ensures that no block is accessed twice in one pass.
    let first: BTreeSet<u64> = small.iter().take(4000).map(|r| r.offset).collect();
    assert_eq!(first.len(), small.len().min(4000));
    let last = requests.iter().rposition(|r| r.bytes == 64 << 10).unwrap();
    assert!(last > 4300, "the jobs run at the same time: {last}");
}

#[test]
fn random_jobs_follow_map_distribution_and_mix() {
    let distinct = |requests: &[Request]| {
        requests
            .iter()
            .map(|r| r.offset)
            .collect::<BTreeSet<u64>>()
            .len()
    };
    let map = draw("map", "[a]\nrw=randread\nsize=4m\n", "");
    assert_eq!((map.len(), distinct(&map)), (1024, 1024));
    assert!(map.iter().all(|r| r.op == Op::Read));
    let independent = draw(
        "independent",
        "[a]\nrw=randread\nsize=4m\nnorandommap\n",
        "",
    );
    assert!(
        (600..700).contains(&distinct(&independent)),
        "a share of e^-1 is not read"
    );
    let zoned = draw(
        "zoned",
        "[a]\nrw=randwrite\nrandom_distribution=zoned:90/10:10/90\nloops=4\n",
        "",
    );
    let hot = zoned.iter().filter(|r| r.offset < 10 * MIB).count() as f64 / zoned.len() as f64;
    assert!((hot - 0.9).abs() < 0.01, "{hot}");
    let mixed = draw(
        "mixed",
        "[a]\nrw=randrw\nrwmixread=70\nsize=40m\nio_size=80m\n",
        "",
    );
    let reads = mixed.iter().filter(|r| r.op == Op::Read).count() as f64 / mixed.len() as f64;
    assert_eq!(mixed.len(), 20_480);
    assert!((reads - 0.7).abs() < 0.02, "{reads}");
    let zipf = draw(
        "zipf",
        "[a]\nrw=randwrite\nrandom_distribution=zipf:1.2\n",
        "",
    );
    assert!(distinct(&zipf) < zipf.len() / 4);
    let small = draw("small", "[a]\nrw=write\nbs=512\nsize=64k\n", "");
    assert!((0..).zip(&small).all(|(i, r)| r.offset == i * 512) && small.len() == 128);
}

#[test]
fn jobs_by_time_move_the_bytes_given() {
    let text = "[global]\ntime_based\nruntime=60\n[a]\nrw=write\nbs=128k\n[b]\nrw=randwrite\niodepth=32\nnumjobs=2\n";
    let requests = draw("time", text, ",bytes=300M");
    let bytes = |size: u64| -> f64 {
        requests
            .iter()
            .map(|r| r.bytes)
            .filter(|b| *b == size)
            .sum::<u64>() as f64
    };
    let (large, small) = (bytes(128 << 10), bytes(4096));
    let total = 300.0 * MIB as f64;
    assert!(((large + small) / total - 1.0).abs() < 0.05);
    // All three jobs have the same product of iodepth and bs, so each transfers a third of the
    // bytes.
    assert!(
        (large / total - 1.0 / 3.0).abs() < 0.05,
        "{}",
        large / total
    );
}

#[test]
fn options_without_effect_are_listed() {
    let job = Job::new(
        "listed",
        "[a]\nrw=read\nioengine=io_uring\ngroup_reporting\nsize=1m\nioengine=sync\n",
    );
    let load = job.load("").unwrap();
    let text = load.build(100 * MIB, 1).unwrap().describe();
    assert!(
        text.contains("(without effect here: ioengine, group_reporting) over 104857600 bytes"),
        "{text}"
    );
    assert_eq!(LoadSpec::parse(&load.to_string()).unwrap(), load);
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    for (text, more, expected) in [
        (
            "[a]\nrw=randwrite\nrate_iops=100\n",
            "",
            ":3: \"rate_iops\": this option is not read",
        ),
        (
            "rw=read\n",
            "",
            ":1: rw: an option before the first section",
        ),
        ("[a\n", "", ":1: \"[a\": a section is like [job]"),
        ("[global]\nrw=read\n", "", ": has no job; add one"),
        ("[a]\nbs=4k\n", "", ":1: [a] has no rw; add it"),
        (
            "[a]\nrw=randrw:8\n",
            "",
            ":2: rw = randrw:8: must be read, write",
        ),
        (
            "[a]\nrw=read\nbs=4k,8k\n",
            "",
            ":3: bs = 4k,8k: must be one size",
        ),
        ("[a]\nrw=read\nbs=0\n", "", ":3: bs = 0: must be one size"),
        (
            "[a]\nrw=read\nsize=ten\n",
            "",
            ":3: size = ten: must be bytes",
        ),
        (
            "[a]\nrw=read\nsize=101%\n",
            "",
            ":3: size = 101%: must be bytes",
        ),
        (
            "[a]\nrw=read\noffset=1m\nsize=50%\n",
            "",
            ":3: offset = 1m: must be in bytes if size is",
        ),
        (
            "[a]\nrw=read\nsize=50%\nio_size=1m\n",
            "",
            ":4: io_size = 1m: must be bytes above 0, and size",
        ),
        (
            "[a]\nrw=randread\nrandom_distribution=pareto:0.9\n",
            "",
            ":3: random_distribution = pareto:0.9: must be random",
        ),
        (
            "[a]\nrw=randread\nrandom_distribution=zipf\n",
            "",
            ":3: random_distribution = zipf: must be random",
        ),
        (
            "[a]\nrw=write\nfdp=1\nplids=0-3\n",
            "",
            ":4: fdp_pli = 0-3: must be one id",
        ),
        (
            "[a]\nrw=write\ndataplacement=zns\n",
            "",
            ":3: dataplacement = zns: must be none, fdp or streams",
        ),
        (
            "[a]\nrw=write\nstonewall=2\n",
            "",
            ":3: stonewall = 2: must be 0 or 1",
        ),
        ("[a]\nrw=write\nnumjobs=65\n", "", ":1: more than 64 jobs"),
        (
            "[a]\nrw=write\nsize=${SIZE}\n",
            "",
            ":3: size = ${SIZE}: variables are not read",
        ),
        (
            "[a]\nrw=write\ntime_based\n",
            "",
            ":1: [a] runs by time (time_based), which depends on the device; give the bytes",
        ),
        (
            "[a]\nrw=write\ntime_based\n[b]\nrw=read\n",
            ",bytes=1G",
            "beside jobs that end by themselves",
        ),
        (
            "[a]\nrw=rw\nrwmixread=101\n",
            "",
            ":3: rwmixread = 101: must be a whole percentage",
        ),
    ] {
        let job = Job::new("errors", text);
        let error = job.load(more).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
        let shown = error.to_string();
        assert!(
            shown.contains(expected) && shown.contains(".fio:"),
            "{text}: {shown}"
        );
    }
    let missing = LoadSpec::parse("fio-job:file=/no/such/job.fio").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
    assert!(LoadSpec::parse("fio-job")
        .unwrap_err()
        .to_string()
        .contains("file is missing, like file=job.fio"));
    let job = Job::new("utf8", b"[a]\n\xff=1\n");
    assert!(job.load("").unwrap_err().to_string().contains("not UTF-8"));
    let large = Job::new("range", "[a]\nrw=write\nsize=200m\n")
        .load("")
        .unwrap();
    let error = large.build(100 * MIB, 1).err().unwrap().to_string();
    assert!(
        error.contains("is more than the 104857600 bytes there are"),
        "{error}"
    );
}

/// Any job file is either read or rejected. A job file that was read is either turned into a load
/// or rejected.
#[test]
fn mutated_jobs_never_panic() {
    const SAMPLE: &str = "[global]\nbs=4k\nfdp=1\n[a]\nrw=write\nsize=90%\nfdp_pli=0\n[b]\nstonewall\nrw=randrw\n\
                          rwmixwrite=30\noffset=1m\nsize=4m\nio_size=9m\nrandom_distribution=zoned:80/20:20/80\n[c]\n\
                          rw=randwrite\nnumjobs=2\niodepth=8\nloops=2\nrandom_distribution=zipf:1.2\nsize=10%\n";
    const SYNTAX: &[u8] = b"0123456789.,:=/%-[]\n; kmgae";
    for seed in flashtwin::seeds(2) {
        let mut rng = flashtwin::Rng::new(seed);
        let mut good = 0;
        for _ in 0..3000 {
            let mut text = SAMPLE.as_bytes().to_vec();
            for _ in 0..=rng.below(3) {
                let at = rng.below(text.len() as u64) as usize;
                let byte = SYNTAX[rng.below(SYNTAX.len() as u64) as usize];
                match rng.below(4) {
                    0 => text[at] = byte,
                    1 => text.insert(at, byte),
                    2 => text.truncate(at.max(1)),
                    _ if text.len() > 1 => drop(text.remove(at)),
                    _ => {}
                }
            }
            let Ok(load) = Job::new("mutated", &text).load("") else {
                continue;
            };
            let _ = load.handles(100 * MIB);
            if let Ok(mut workload) = load.build(100 * MIB, seed) {
                good += usize::from(workload.next_batch(&mut Vec::new()).is_ok());
            }
        }
        assert!(good > 100, "{good}");
    }
}
