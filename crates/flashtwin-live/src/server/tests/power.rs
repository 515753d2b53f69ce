//! Power losses while clients write numbered contents. Flushed and forced data must survive. The server must report
//! exactly the pages that were lost.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const PAGE: u64 = 4096;
const CLIENTS: u64 = 4;
const PAGES_EACH: u64 = 60;

/// Contents of one page, as far as its client knows them. The contents of a page are numbered in ascending order.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Newest contents for which a write was submitted.
    asked: u64,
    /// Newest contents whose write was acknowledged.
    completed: u64,
    /// Number of the newest safe contents. Contents are safe in two cases: they were forced to the medium, or a flush
    /// has completed that was requested after their write was acknowledged.
    safe: u64,
}

fn contents(page: u64, number: u64) -> Vec<u8> {
    match number {
        0 => vec![0; PAGE as usize],
        _ => [page.to_le_bytes(), number.to_le_bytes()]
            .concat()
            .repeat(PAGE as usize / 16),
    }
}

/// Returns the numbers of the contents in the first and in the last sector of a page. Checks that every other sector
/// has one of the two.
fn numbers(page: u64, read: &[u8]) -> (u64, u64) {
    let of = |sector: &[u8]| {
        let number = u64::from_le_bytes(sector[8..16].try_into().expect("eight bytes"));
        assert_eq!(sector, &contents(page, number)[..512], "page {page}");
        number
    };
    let all: Vec<u64> = read.chunks(512).map(of).collect();
    let (first, last) = (all[0], all[all.len() - 1]);
    let turn = all.iter().position(|&n| n != first).unwrap_or(all.len());
    assert!(
        all[turn..].iter().all(|&n| n == last),
        "page {page}: {all:?}"
    );
    (first, last)
}

/// The kinds of data loss that a power loss may cause on a device.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// No acknowledged write is ever lost.
    LosesNothing,
    LosesPages,
    Torn,
}

/// Writes pages, flushes, and forces pages to the medium, until the power fails.
fn client(session: &Session<'_>, base: u64, known: &mut [Known], rng: &mut Rng) {
    loop {
        let at = rng.below(PAGES_EACH) as usize;
        let fua = rng.below(6) == 0;
        let pages = 1 + rng.below(3).min(PAGES_EACH - 1 - at as u64) as usize;
        let mut data = Vec::new();
        for (i, of) in known[at..at + pages].iter_mut().enumerate() {
            of.asked += 1;
            data.extend(contents(base + (at + i) as u64, of.asked));
        }
        match session.write(&data, (base + at as u64) * PAGE, fua) {
            Ok(()) => {}
            Err(Failure::Cut | Failure::Lost) => return,
            Err(other) => panic!("{other:?}"),
        }
        for of in &mut known[at..at + pages] {
            of.completed = of.asked;
            if fua {
                of.safe = of.asked;
            }
        }
        if rng.below(12) == 0 {
            if session.flush().is_err() {
                return;
            }
            known.iter_mut().for_each(|of| of.safe = of.completed);
        }
    }
}

/// Simulates `times` power losses. Returns the total number of pages lost.
fn cut_many_times(name: &str, overrides: &[(&str, &str)], times: u64, how: How) -> usize {
    let place = Place::new(name, overrides);
    check(&place.start(&[]), times, how)
}

fn check(server: &Server, times: u64, how: How) -> usize {
    let times = flashtwin::seed_count(times);
    let torn = how == How::Torn;
    let mut known = vec![vec![Known::default(); PAGES_EACH as usize]; CLIENTS as usize];
    let mut rng = Rng::new(times);
    let (mut lost, mut torn_ever) = (0, false);
    for round in 0..times {
        let session = server.connect();
        let cut = std::thread::scope(|scope| {
            for (i, known) in (0..).zip(&mut known) {
                let (session, mut rng) = (&session, Rng::new(round * 100 + i));
                scope.spawn(move || client(session, i * PAGES_EACH, known, &mut rng));
            }
            std::thread::sleep(std::time::Duration::from_micros(500 + rng.below(9_500)));
            server.cut_power(torn).expect("the device is back")
        });
        assert!(
            matches!(session.flush(), Err(Failure::Cut)),
            "an old connection"
        );
        lost += cut.lost.len();
        let session = server.connect();
        for (i, of) in known.iter_mut().flatten().enumerate() {
            let page = i as u64;
            let mut read = vec![0; PAGE as usize];
            session.read(&mut read, page * PAGE).expect("completes");
            let (first, last) = numbers(page, &read);
            torn_ever |= first != last;
            let at_least = match how != How::LosesNothing && cut.lost.contains(&page) {
                true => of.safe,
                false => of.completed,
            };
            assert!(
                at_least <= last && last <= of.asked,
                "page {page}, cut {round}"
            );
            assert!(torn || first == last, "page {page} is torn");
            // The contents after this power loss have been checked above. New contents replace them, so that a later
            // loss cannot restore older ones.
            let now = contents(page, of.asked + 1);
            session.write(&now, page * PAGE, true).expect("completes");
            (of.asked, of.completed, of.safe) = (of.asked + 1, of.asked + 1, of.asked + 1);
        }
    }
    assert!(torn_ever || !torn, "nothing was ever torn");
    lost
}

#[test]
fn a_volatile_buffer_loses_unflushed_writes() {
    let volatile = [("buffer.power_loss_protection", "false")];
    assert!(cut_many_times("volatile", &volatile, 25, How::LosesPages) > 0);
    let small = [
        volatile[0],
        ("buffer.capacity", "128KiB"),
        ("buffer.evict", "background"),
    ];
    assert!(cut_many_times("small", &small, 25, How::LosesPages) > 0);
    assert!(cut_many_times("torn", &small, 15, How::Torn) > 0);
}

#[test]
fn protected_and_missing_buffers_lose_no_completed_write() {
    let protected = [("buffer.power_loss_protection", "true")];
    assert_eq!(
        cut_many_times("protected", &protected, 10, How::LosesNothing),
        0
    );
    // What is lost was in flight.
    cut_many_times("bufferless", &[("buffer", "none")], 10, How::LosesNothing);
}

#[test]
fn calls_in_flight_fail_in_a_power_loss() {
    let place = Place::new("waiting", &[("buffer", "none")]);
    let server = place.start(&[("dilation", "1000")]);
    let session = server.connect();
    let began = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            began.store(true, Ordering::Release);
            let response = session.write(&[1; 8192], 0, false);
            assert!(
                matches!(response, Err(Failure::Lost | Failure::Cut)),
                "{response:?}"
            );
        });
        while !began.load(Ordering::Acquire) || server.report().waiting == 0 {
            std::thread::yield_now();
        }
        let cut = server.cut_power(false).expect("the device is back");
        assert_eq!((cut.unfinished, cut.lost), (1, vec![0, 1]));
    });
    // Requests on a connection that was made before the power loss change nothing. It does not matter whether they are
    // acknowledged.
    let late = [
        session.write(&[2; 8192], 0, false),
        session.read(&mut [0; 1], 0),
        session.trim(0, 4096),
    ];
    assert!(late
        .iter()
        .all(|response| matches!(response, Err(Failure::Cut))));
    let mut read = [1; 8192];
    server.connect().read(&mut read, 0).expect("completes");
    assert_eq!(read, [0; 8192]);
}

/// Returns a server with an array of two members. The members have volatile buffers; the array itself has no buffer.
fn volatile_array(place: &Place) -> Server {
    let array = "name = \"pair\"\n[array]\nlevel = \"raid0\"\nmembers = \"demo*2\"\n[member]\n\
                 geometry.blocks_per_plane = 64\nbuffer.power_loss_protection = false\n";
    let path = place.0.join("array.toml");
    fs::write(&path, array).expect("room");
    place.start(&[("device", &*path.to_string_lossy())])
}

#[test]
fn an_array_loses_unflushed_writes_of_its_members() {
    let place = Place::new("array", &[]);
    let server = volatile_array(&place);
    assert!(check(&server, 25, How::LosesPages) > 0);
}

#[test]
fn counters_restart_after_a_power_loss_and_reports_continue() {
    let place = Place::new("counters", &[]);
    let disk = place.0.join("disk.img");
    let server = place.start(&[("store", &*disk.to_string_lossy())]);
    let write = |pages: u64| {
        let session = server.connect();
        (0..pages).for_each(|at| session.write(&[1; 4096], at * 4096, true).expect("room"));
    };
    write(20);
    let writes = || {
        let report = server.report();
        let counts = [&report.responses, &report.recent.responses].map(|of| of.write.requests);
        (counts, report.lateness.calls, report.recent.lateness.calls)
    };
    assert_eq!(writes(), ([20, 20], 20, 20));
    server.cut_power(false).expect("the device is back");
    write(3);
    assert_eq!(writes(), ([3, 3], 23, 3));
    server.cut_power(false).expect("the device is back");
    assert_eq!(writes(), ([0, 0], 23, 0));
    server.cut_power(false).expect("the device is back");
    write(1);
    server.stop().expect("a clean stop");
    assert!(state_path(&disk).exists());
}

/// Zeros that are written at any offset, to pages in the buffer, survive a power loss if they were forced or flushed.
fn zeros_are_safe(server: &Server) {
    let bytes = 4 * PAGE;
    for (round, (at, length)) in [
        (512, 512),
        (0, PAGE + 512),
        (PAGE - 512, PAGE + 512),
        (512, 3 * PAGE),
        (100, 2 * PAGE - 100),
        (0, bytes),
    ]
    .into_iter()
    .cycle()
    .take(12)
    .enumerate()
    {
        let session = server.connect();
        let all = |byte: u8| vec![byte; bytes as usize];
        session.write(&all(1), 0, true).expect("completes");
        session.write(&all(2), 0, false).expect("completes");
        let fua = round < 6;
        session.zero(at, length, fua, true, false).expect("room");
        if !fua {
            session.flush().expect("completes");
        }
        server.cut_power(false).expect("the device is back");
        let mut read = all(3);
        server.connect().read(&mut read, 0).expect("completes");
        let zeros = &read[at as usize..(at + length) as usize];
        assert!(zeros.iter().all(|&byte| byte == 0), "round {round}");
        let others = read.iter().filter(|&&byte| byte == 1 || byte == 2).count();
        assert_eq!(others as u64, bytes - length, "round {round}");
    }
}

#[test]
fn acknowledged_zeros_in_parts_of_pages_are_as_safe_as_writes() {
    let place = Place::new("zeros", &[("buffer.power_loss_protection", "false")]);
    zeros_are_safe(&place.start(&[]));
    let place = Place::new("zeros-bufferless", &[("buffer", "none")]);
    zeros_are_safe(&place.start(&[]));
    let place = Place::new("zeros-array", &[]);
    zeros_are_safe(&volatile_array(&place));
}
