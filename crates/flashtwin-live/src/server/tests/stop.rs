//! Stops of a server in which one step fails. The other steps must still be executed.

use std::sync::atomic::AtomicU32;
use std::thread;

use flashtwin::{Request, Time};

use super::*;
use crate::twin::made_up::{Does, MadeUp};

/// Stops a server. Returns the error message, and whether there are a saved state, a report, and the end of the
/// recording.
fn stop(name: &str, does: Does, in_file: bool) -> (String, [bool; 3]) {
    let place = Place::new(&format!("stop-{name}-{in_file}"), &[]);
    let path = |name: &str| place.0.join(name);
    let [disk, report, record] = ["disk.img", "report.json", "record.csv"].map(path);
    let store = match in_file {
        true => disk.to_string_lossy().into_owned(),
        false => "memory".into(),
    };
    let settings = [
        ("store", &*store),
        ("report", &*report.to_string_lossy()),
        ("record", &*record.to_string_lossy()),
    ];
    let mut ready = PreparedServer::prepare(place.settings(&settings)).expect("sound settings");
    ready.twin = Box::new(MadeUp::new(does));
    let server = ready.start().expect("threads");
    let recording = server.recording.as_ref().expect("asked for");
    recording.add(&Request {
        arrival: Time::ZERO,
        offset: 0,
        bytes: 0,
        op: flashtwin::Op::Flush,
        fua: false,
        ..Request::default()
    });
    let message = server.stop().err().map_or(String::new(), |e| e.to_string());
    let recorded = fs::read_to_string(&record).expect("a recording");
    let kept = [
        state_path(&disk).exists(),
        report.exists(),
        recorded.lines().count() == 2,
    ];
    (message, kept)
}

#[test]
fn a_failed_stop_keeps_the_rest_and_reports_the_failure() {
    assert_eq!(
        stop("sound", Does::NeverResponds, true),
        (String::new(), [true, true, true])
    );
    assert_eq!(
        stop("sound", Does::NeverResponds, false),
        (String::new(), [false, true, true])
    );
    let (message, kept) = stop("report", Does::BreaksInAReport, false);
    assert!(
        message.contains("the last report was not made: a bug"),
        "{message}"
    );
    assert_eq!(kept, [false, false, true]);
    // The panic has broken the device, so its state is not saved.
    let (message, kept) = stop("report", Does::BreaksInAReport, true);
    assert!(
        message.contains("state of its flash is that of the last"),
        "{message}"
    );
    assert_eq!(kept, [false, false, true]);
    let (message, kept) = stop("rest", Does::BreaksComingToRest, true);
    assert!(
        message.contains("state of its flash is that of the last"),
        "{message}"
    );
    assert_eq!(kept, [false, true, true]);
    let (message, kept) = stop("rest", Does::BreaksComingToRest, false);
    assert!(message.contains("did not come to rest: a bug"), "{message}");
    assert_eq!(kept, [false, true, true]);
}

#[test]
fn a_start_lists_only_files_that_it_created() {
    let place = Place::new("made", &[]);
    let path = |name: &str| place.0.join(name).to_string_lossy().into_owned();
    let [disk, record, made] = ["disk.img", "record.csv", "made"].map(path);
    let settings = [("store", &*disk), ("made", &*made)];
    let recorded = [settings[0], settings[1], ("record", &*record)];
    drop(PreparedServer::prepare(place.settings(&recorded)).expect("sound settings"));
    let message = |listed: &str| fs::read_to_string(listed).unwrap_or_default();
    assert_eq!(message(&made), format!("{disk}\n{record}\n"));
    fs::remove_file(&made).expect("there");
    drop(PreparedServer::prepare(place.settings(&settings)).expect("sound settings"));
    assert_eq!(message(&made), "");
}

#[test]
fn drain_waits_for_calls_until_aborted() {
    let place = Place::new("drain", &[]);
    let mut ready = PreparedServer::prepare(place.settings(&[])).expect("sound settings");
    ready.twin = Box::new(MadeUp::new(Does::NeverResponds));
    let server = ready.start().expect("threads");
    thread::scope(|threads| {
        let call = threads.spawn(|| {
            let _call = server.admit()?;
            server.connect().flush()
        });
        while server.in_flight.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        server.close();
        let refused = server.admit().map(drop);
        assert!(matches!(refused, Err(Failure::Stopping)), "{refused:?}");
        let polls = AtomicU32::new(0);
        server.drain(Duration::MAX, |_| {
            polls.fetch_add(1, Ordering::Relaxed) == 2
        });
        assert_eq!(polls.into_inner(), 3, "polled until aborted");
        let cut_short = call.join().expect("no bug");
        assert!(matches!(cut_short, Err(Failure::Stopping)), "{cut_short:?}");
        // If no call is in flight, `drain` does not wait.
        server.drain(Duration::MAX, |_| panic!("no call is in flight"));
    });
    server.stop().expect("sound");
}
