//! Reading traces: requests and bytes per second of each trace form, from a file in the page cache. Also the time of a
//! run if another thread reads the trace, relative to a run without this thread.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use flashtwin::{Op, Request, Rng, Ssd, Time};
use flashtwin_sim::{run, Control, Pacing, RunConfig};
use flashtwin_workload::{convert, open_trace, read_ahead, CsvColumns, TraceOptions};

use crate::{figure, median, profile, Failure, DEPTH};

const REQUESTS: u64 = 2_000_000;
/// Number of requests of the trace that a run replays.
const REPLAYED: u64 = 500_000;

/// A temporary directory that is removed at the end.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // Errors are ignored, because the directory is in the temporary directory of the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads each form in turn, `rounds` times, and prints the medians.
pub fn rates(rounds: usize) -> Result<(), Failure> {
    let name = format!("flashtwin_bench_{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&directory.0)?;
    let path = |name: &str| directory.0.join(name);
    let requests = requests();
    write_csv(&path("t.csv"), &requests)?;
    convert(&path("t.csv"), &path("t.ftb"), &TraceOptions::default())?;
    convert(&path("t.csv"), &path("t.csv.zst"), &TraceOptions::default())?;
    write_oracle_general(&path("t.oracleGeneral"), &requests)?;

    let forms = [
        ("binary", "t.ftb"),
        ("csv", "t.csv"),
        ("csv_zstd", "t.csv.zst"),
        ("oracle_general", "t.oracleGeneral"),
    ];
    let mut seconds = vec![Vec::new(); forms.len()];
    for _ in 0..rounds {
        for ((_, name), seconds) in forms.iter().zip(&mut seconds) {
            let began = Instant::now();
            let read = count(&path(name))?;
            assert_eq!(read, REQUESTS, "{name}: the reader lost requests");
            seconds.push(began.elapsed().as_secs_f64());
        }
    }
    for ((form, name), seconds) in forms.iter().zip(seconds) {
        let seconds = median(seconds);
        let bytes = path(name).metadata()?.len();
        figure(
            &format!("{form}_requests_per_second"),
            REQUESTS as f64 / seconds,
        );
        figure(&format!("{form}_bytes_per_second"), bytes as f64 / seconds);
    }
    figure("read_ahead_ratio", ahead(&path("t.csv.zst"), rounds)?);
    Ok(())
}

/// Returns the wall-clock time of a run whose trace another thread reads, relative to a run that reads the trace on its
/// own thread.
fn ahead(trace: &Path, rounds: usize) -> Result<f64, Failure> {
    let spec = profile("ecr", &[])?;
    let mut ssd = Ssd::new(&spec);
    ssd.fill_steady(1);
    let config = RunConfig {
        pacing: Pacing::Closed { depth: DEPTH },
        requests_max: Some(REPLAYED),
        ..RunConfig::default()
    };
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let [between, ahead] = [false, true].map(|is_ahead| -> Result<f64, Failure> {
            let mut workload = open_trace(trace, &TraceOptions::default())?;
            if is_ahead {
                workload = read_ahead(workload);
            }
            let began = Instant::now();
            let control = Control::default();
            run(&mut ssd, &mut *workload, &config, &control, None)?;
            Ok(began.elapsed().as_secs_f64())
        });
        ratios.push(ahead? / between?);
    }
    Ok(median(ratios))
}

fn requests() -> Vec<Request> {
    let (mut rng, mut now) = (Rng::new(1), Time::ZERO);
    let request = |_| {
        now += Time::from_us(rng.below(100));
        Request {
            arrival: now,
            offset: rng.below(1 << 23) * 4096,
            bytes: 4096 << rng.below(4),
            op: if rng.below(16) < 9 {
                Op::Write
            } else {
                Op::Read
            },
            fua: false,
            ..Request::default()
        }
    };
    (0..REQUESTS).map(request).collect()
}

fn write_csv(path: &Path, requests: &[Request]) -> Result<(), Failure> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "{}", CsvColumns::Four.header())?;
    for request in requests {
        CsvColumns::Four.write_request(&mut file, request)?;
    }
    Ok(file.flush()?)
}

fn write_oracle_general(path: &Path, requests: &[Request]) -> Result<(), Failure> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for request in requests {
        file.write_all(&(request.arrival.as_s() as u32).to_le_bytes())?;
        file.write_all(&(request.offset / 512).to_le_bytes())?;
        file.write_all(&(request.bytes as u32).to_le_bytes())?;
        file.write_all(&(-1i64).to_le_bytes())?;
    }
    Ok(file.flush()?)
}

/// Counts the requests in a file by reading it to its end.
fn count(path: &Path) -> Result<u64, Failure> {
    let mut workload = open_trace(path, &TraceOptions::default())?;
    let (mut batch, mut count) = (Vec::new(), 0);
    while workload.next_batch(&mut batch)? > 0 {
        count += batch.len() as u64;
        batch.clear();
    }
    Ok(count)
}
