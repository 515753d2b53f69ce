//! Orders on the control socket to a running device.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use super::*;

/// Starts a server with an array of small members.
fn served_array(name: &str, more: &[(&str, &str)]) -> (Place, Server) {
    let place = Place::new(name, &[]);
    let text = flashtwin::spec::builtin_array("raid5-array").expect("built in");
    let mut all = vec![("member.geometry.blocks_per_plane", "32")];
    all.extend(more);
    let spec = flashtwin::ArraySpec::with_overrides(text, name, &all).expect("sound");
    fs::write(place.0.join("device.toml"), spec.to_toml()).expect("room");
    let server = place.start(&[("dilation", "0.01")]);
    (place, server)
}

fn erases(server: &Server) -> u64 {
    server.report().flash.erases
}

/// Writes random pages until every die has full blocks with some invalid pages.
fn fill(server: &Server, seed: u64) {
    let pages = server.size_bytes() / 4096;
    let mut rng = Rng::new(seed);
    for turn in 0..pages {
        let page = if turn % 8 == 0 {
            rng.below(turn + 1)
        } else {
            turn
        };
        server
            .connect()
            .write(&[turn as u8; 4096], page * 4096, turn % 64 == 0)
            .expect("room");
    }
    server.connect().flush().expect("completes");
}

#[test]
fn dies_collect_when_ordered() {
    for seed in flashtwin::seeds(1) {
        let place = Place::new("collect", &[("buffer", "none")]);
        let server = place.start(&[("dilation", "0.001")]);
        fill(&server, seed);
        let before = erases(&server);
        assert_eq!(server.collect(None, None).expect("it can"), 2);
        // The pacer executes the order even if no client makes a call.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while erases(&server) < before + 8 {
            assert!(
                std::time::Instant::now() < deadline,
                "eight planes, a block each"
            );
            std::thread::yield_now();
        }
        let refusals = [
            (server.collect(None, Some(2)), "dies 0 to 1"),
            (server.collect(Some(0), None), "no array"),
        ];
        for (refused, why) in refusals {
            let message = refused.expect_err("refused").to_string();
            assert!(message.contains(why), "{message}");
        }
        server.stop().expect("a clean stop");
    }
}

#[test]
fn members_collect_when_ordered() {
    let (_place, server) = served_array("collect-array", &[]);
    let members = server.collect(None, Some(0)).expect("each has one");
    assert!(members > 1);
    assert_eq!(server.collect(Some(1), Some(0)).expect("it has one"), 1);
    let message = server.collect(Some(99), None).expect_err("no such member");
    assert!(message.to_string().contains("members 0 to"), "{message}");
    server.fail_member(1).expect("one may");
    assert_eq!(
        server.collect(None, Some(0)).expect("the others"),
        members - 1
    );
    server.collect(Some(1), None).expect_err("it has failed");
}

/// Clients write, read back, and force pages to the medium while the buffer policy is replaced repeatedly. Every read
/// returns the last write. A power loss loses no more pages than with a policy that does not change.
#[test]
fn exchanging_the_policy_is_invisible_to_clients() {
    for seed in flashtwin::seeds(1) {
        let more = [
            ("buffer.capacity", "\"512 KiB\""),
            ("buffer.power_loss_protection", "false"),
            ("buffer.policy", "cda-gc"),
        ];
        let place = Place::new("policy", &more);
        let server = place.start(&[("dilation", "0.01")]);
        let names = flashtwin::buffer::ChosenPolicy::names();
        let running = std::sync::atomic::AtomicUsize::new(3);
        std::thread::scope(|scope| {
            for client in 0..3_u64 {
                let (server, running) = (&server, &running);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed * 3 + client);
                    let mut held = [0_u8; 100];
                    for _ in 0..2000 {
                        let page = rng.below(100);
                        let offset = (client * 100 + page) * 4096;
                        if rng.below(2) == 0 {
                            let byte = rng.below(256) as u8;
                            let fua = rng.below(30) == 0;
                            let written = server.connect().write(&[byte; 4096], offset, fua);
                            written.expect("room");
                            held[page as usize] = byte;
                        }
                        let mut read = [0; 4096];
                        server.connect().read(&mut read, offset).expect("completes");
                        assert_eq!(read, [held[page as usize]; 4096]);
                    }
                    running.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                });
            }
            let mut turn = 0;
            while running.load(std::sync::atomic::Ordering::Relaxed) > 0 || turn < names.len() {
                let name = &names[turn % names.len()];
                server.set_policy(name, &[]).expect("it has a buffer");
                turn += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        // The previous policy may have written back all pages in idle time.
        server.set_policy("lru", &[]).expect("it has a buffer");
        for page in 0..10 {
            let written = server.connect().write(&[7; 4096], page * 4096, false);
            written.expect("room");
        }
        // A program that the previous policy started may still be running.
        let mut dirty = u64::MAX;
        while std::mem::replace(&mut dirty, server.report().dirty_pages) != dirty {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(dirty >= 10);
        server.set_policy("cflru", &[]).expect("it has a buffer");
        assert_eq!(server.report().dirty_pages, dirty);
        let cut = server.cut_power(false).expect("it comes back");
        assert_eq!(cut.lost.len() as u64, dirty);
        server.stop().expect("a clean stop");
    }
}

#[test]
fn an_invalid_policy_is_refused() {
    let place = Place::new("no-policy", &[]);
    let server = place.start(&[]);
    for (name, set, why) in [
        ("nonsense", &[][..], "no such policy"),
        ("cda-gc", &[], "blocks of their own"),
        (
            "lru",
            &[("buffer.capacity", "8MiB")],
            "only the keys of a policy",
        ),
    ] {
        let message = server
            .set_policy(name, set)
            .expect_err("refused")
            .to_string();
        assert!(message.contains(why), "{message}");
    }
    server
        .set_policy("cflru", &[("buffer.window", "0.5")])
        .expect("sound");
    let (_place, array) = served_array("no-policy-array", &[("buffer", "none")]);
    let message = array
        .set_policy("lru", &[])
        .expect_err("no buffer")
        .to_string();
    assert!(message.contains("no buffer of its own"), "{message}");
}

#[test]
fn a_member_is_slow_until_reset() {
    let (_place, server) = served_array("slow", &[("buffer", "none")]);
    for page in 0..400_u64 {
        let written = server.connect().write(&[9; 4096], page * 4096, false);
        written.expect("room");
    }
    // Returns the mean response time, in µs, of reads with one request in flight.
    let mut before = (0.0, 0);
    let mut mean_us = || {
        for page in 0..400_u64 {
            let mut read = [0; 4096];
            server
                .connect()
                .read(&mut read, page * 4096)
                .expect("completes");
            assert_eq!(read, [9; 4096]);
        }
        let read = server.report().responses.read;
        let (sum, count) = (read.total_s * 1e6, read.requests);
        let mean = (sum - before.0) / (count - before.1) as f64;
        before = (sum, count);
        mean
    };
    let plain = mean_us();
    server.slow_member(1, 100.0).expect("it is there");
    let slow = mean_us();
    assert!(slow > 3.0 * plain, "{plain} {slow}");
    server.slow_member(1, 1.0).expect("it is there");
    let again = mean_us();
    assert!((again - plain).abs() < 0.5 * plain, "{plain} {again}");
    for (member, times, why) in [
        (1, 0.5, "from 1"),
        (1, 1001.0, "to 1000"),
        (1, f64::NAN, "from 1"),
        (99, 2.0, "members 0 to"),
    ] {
        let message = server
            .slow_member(member, times)
            .expect_err("refused")
            .to_string();
        assert!(message.contains(why), "{message}");
    }
    let place = Place::new("slow-alone", &[]);
    let message = place.start(&[]).slow_member(0, 2.0).expect_err("no array");
    assert!(message.to_string().contains("no array"), "{message}");
}

#[test]
fn a_member_that_fails_takes_its_counters_along() {
    let (_place, server) = served_array("counters-of-members", &[]);
    let session = server.connect();
    for page in 0..2000 {
        session.write(&[1; 4096], page * 4096, true).expect("room");
    }
    let before = server.report().flash.host_pages;
    server.fail_member(0).expect("one may");
    session.write(&[1; 4096], 0, true).expect("room");
    let report = server.report();
    assert!(report.flash.host_pages < before);
    assert!(report.recent.flash.host_pages < before, "{report:?}");
    let longest_s = report
        .recent
        .flash
        .chips_gc_s
        .iter()
        .copied()
        .fold(0.0, f64::max);
    assert!(longest_s <= report.recent.device_s, "{longest_s}");
}

#[test]
fn a_client_that_shuts_down_writing_gets_one_response() {
    let place = Place::new("hung-up", &[]);
    let server = Arc::new(place.start(&[("dilation", "0.01")]));
    let socket = place.0.join("control");
    let control = crate::Control::start(server, &socket).expect("a socket");
    for line in ["{\"do\": \"collect\"}\n", "what\n", "no end of line"] {
        let mut client = UnixStream::connect(&socket).expect("it listens");
        let patience = Some(Duration::from_secs(60));
        client.set_read_timeout(patience).expect("a timeout");
        client.write_all(line.as_bytes()).expect("room");
        client.shutdown(Shutdown::Write).expect("a connection");
        let mut response = String::new();
        client.read_to_string(&mut response).expect("an end");
        assert_eq!(response.matches('\n').count(), 1, "{response}");
    }
    control.stop();
}
